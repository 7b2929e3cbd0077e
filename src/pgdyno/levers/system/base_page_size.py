"""base_page_size: the size of the kernel's ordinary pages, which Arm machines may choose.

What it does:
    Reports the page size, and on 64-bit Arm how another one is had. It changes nothing: it takes another
    kernel and a restart of the machine.

Why it helps:
    With 64 kB pages the server's code, its private memory and the file cache need a sixteenth of the page
    table entries. Shared memory has huge pages of its own (see huge_page_pool).

When it hurts:
    Every small file and every process takes more memory, and the kernel reads and caches 64 kB at a time. It
    gives no leave to turn full_page_writes off: only the storage can promise that a page is written whole
    (see atomic_writes).

How it is verified:
    KernelPageSize in /proc/self/smaps; getconf PAGESIZE says the same.

How it is undone:
    There is nothing to undo. By hand: start the former kernel.

Evidence:
    No published figure for PostgreSQL was found; not measured by pgdyno yet.

References:
    https://docs.kernel.org/arch/arm64/memory.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    KB,
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)
from pgdyno.model import numbers

PAGE_BYTES, ARCHITECTURE = "host.memory.page_bytes", "host.cpu.architecture"
ARM = "aarch64"
ORDINARY_BYTES = 4 * KB

LEVER = Lever(
    name="base_page_size",
    title="64 kB pages on Arm",
    layer=Layer.SYSTEM,
    risk=Risk.REBOOT,
    maturity=Maturity.PREVIEW,
    facts=(PAGE_BYTES, ARCHITECTURE),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the page size, and the requirements for another one."""
    architecture = ctx.known(ARCHITECTURE)
    have = f"the kernel's pages are {numbers.size(ctx.known(PAGE_BYTES))}"
    if _is_in_use(ctx):
        return Skipped(LEVER.name, f"{have}: fewer page table entries, and more memory for small things")
    if architecture != ARM:
        return Skipped(LEVER.name, f"{have}: kernels for {architecture} come with no others")
    return Skipped(
        LEVER.name,
        f"{have}. Kernels with 64 kB are packages of their own (kernel-64k on Red Hat Enterprise Linux, "
        "linux-generic-64k on Ubuntu): install one, restart the machine, and measure with your workload",
    )


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(PAGE_BYTES) > ORDINARY_BYTES)


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
