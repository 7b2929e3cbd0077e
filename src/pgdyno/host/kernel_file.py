"""Kernel files with a value that can be read and written: /proc/sys, /sys, /proc/irq. Pure.

A file is identified by its path on the host, ``/proc/sys/vm/swappiness``; messages show a sysctl under its
name in sysctl(8). Values are compared in the kernel's format, which may differ from the text written.

Source: Linux, Documentation/admin-guide/sysctl/, Documentation/ABI/, sysctl(8).
"""

from __future__ import annotations

import re

SYSCTL_ROOT = "/proc/sys/"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""Differs after each boot: a changed value means that earlier changes to the kernel are lost."""
COUPLED = {
    f"{SYSCTL_ROOT}vm/{one}": f"{SYSCTL_ROOT}vm/{other}"
    for pair in (
        ("dirty_bytes", "dirty_ratio"),
        ("dirty_background_bytes", "dirty_background_ratio"),
        ("overcommit_kbytes", "overcommit_ratio"),
    )
    for one, other in (pair, pair[::-1])
}
"""Alternatives for one setting: writing one sets the other to 0, which disables it."""
_SCHEDULER = "/queue/scheduler"
_HUGE_PAGES = ("/transparent_hugepage/enabled", "/transparent_hugepage/shmem_enabled")
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_MASK = re.compile(r"^[0-9a-f]+(,[0-9a-f]{8})*$", re.IGNORECASE)
_IS_MASK = re.compile(r"(_cpus|/smp_affinity)$")


def sysctl_path(name: str) -> str:
    """Return a sysctl's path: ``vm.swappiness`` → ``/proc/sys/vm/swappiness``."""
    return SYSCTL_ROOT + name.replace(".", "/")


def reset_by(path: str) -> tuple[str, ...]:
    """Return patterns of the files that the kernel resets when ``path`` is written.

    Switching the I/O scheduler resets the queue depth and the scheduler's tunables; the old values are lost.
    Enabling transparent huge pages raises vm.min_free_kbytes, to keep memory free for such pages.
    """
    if path.endswith(_HUGE_PAGES):
        return (f"{SYSCTL_ROOT}vm/min_free_kbytes",)
    if not path.endswith(_SCHEDULER):
        return ()
    queue = path.removesuffix("/scheduler")
    return (f"{queue}/nr_requests", f"{queue}/iosched/*")  # in this order: the depth sets tunables


def display_name(path: str) -> str:
    """Return a sysctl's name; for other files, return the path."""
    return path.removeprefix(SYSCTL_ROOT).replace("/", ".") if path.startswith(SYSCTL_ROOT) else path


def value_in(text: str) -> str:
    """Return the value in a file's first line; of several choices, the one in brackets.

    Columns are separated by one space, whatever the kernel's separator.
    """
    line = text.partition("\n")[0]
    choice = _CHOICE.search(line)
    return choice[1] if choice is not None else " ".join(line.split())


def choices_in(text: str) -> tuple[str, ...]:
    """Return a file's choices: ``none [mq-deadline]`` → none, mq-deadline; empty without brackets."""
    line = text.partition("\n")[0]
    return tuple(word.strip("[]") for word in line.split()) if _CHOICE.search(line) else ()


def is_same(path: str, one: str, other: str) -> bool:
    """Whether two values of a file are equivalent: CPU masks may differ in leading zeros."""
    one, other = " ".join(one.split()), " ".join(other.split())
    if one == other:
        return True
    is_mask = _IS_MASK.search(path) and _MASK.match(one) and _MASK.match(other)
    return bool(is_mask) and int(one.replace(",", ""), 16) == int(other.replace(",", ""), 16)
