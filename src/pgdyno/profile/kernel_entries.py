"""How a sampled process came into the kernel: by which system call, or by a page fault or an interrupt."""

from __future__ import annotations

import re
from collections.abc import Sequence

PAGE_FAULTS = "page faults"
INTERRUPTS = "interrupts"
GIVING_WAY = "giving way to other processes"
ENTERING = "entering and leaving system calls"
OTHERS = "others"

_SYSTEM_CALL = re.compile(r"__(?:x64|arm64|riscv|s390x|powerpc)_sys_(\w+)")
# The first one from outside decides: an interrupt can come while a fault is handled, not the reverse.
_FAULTS = re.compile(
    r"asm_exc_page_fault|exc_page_fault|do_user_addr_fault|do_(mem|translation)_abort|do_page_fault"
)
_INTERRUPTS = re.compile(r"asm_sysvec_\w+|asm_common_interrupt|irqentry_\w+|el0t?_(64_)?irq\w*|el0_interrupt")

_LEAVING = re.compile(r"exit_to_user_mode_loop|do_notify_resume")
_ENTRY = re.compile(r"do_syscall_64|entry_SYSCALL_\w+|syscall_return_\w+|el0_svc\w*|invoke_syscall")


def kernel_entry(frames: Sequence[str]) -> str:
    """Return the system call's name, or one of the names above, for a stack that begins in the kernel."""
    for function in reversed(frames):
        if call := _SYSTEM_CALL.fullmatch(function):
            return call[1]
        if _FAULTS.fullmatch(function):
            return PAGE_FAULTS
        if _INTERRUPTS.fullmatch(function):
            return INTERRUPTS
        if _LEAVING.fullmatch(function):
            return GIVING_WAY
    return ENTERING if any(map(_ENTRY.fullmatch, frames)) else OTHERS
