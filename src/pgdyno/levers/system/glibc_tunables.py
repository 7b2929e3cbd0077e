"""glibc_tunables: heaps on huge pages, and switches between processes without rseq; reported only.

What it does:
    Says what GLIBC_TUNABLES could tell the C library of a server when it is started: malloc asks for
    transparent huge pages (glibc.malloc.hugetlb = 1), and threads do not register for restartable sequences
    (glibc.pthread.rseq = 0). It changes nothing: an environment is given by whoever starts the server.

Why it helps:
    A heap on huge pages has fewer page faults and translations. A registered process is written to by the
    kernel each time a CPU goes over to it, which PostgreSQL has no use for.

When it hurts:
    A huge page is cleared as a whole at the first touch, in every new backend, and takes 2 MB. An allocator
    that uses rseq, as tcmalloc does, falls back to something slower.

How it is verified:
    The environment of the postmaster, as it was started; AnonHugePages in /proc/PID/smaps of a backend.

How it is undone:
    Nothing is changed. By hand: start the server without the variable.

Evidence:
    No published gain for PostgreSQL was found; our estimate is 0 to 2 %. No figure of our own yet.

References:
    https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html
    https://www.gnu.org/software/libc/manual/html_node/POSIX-Thread-Tunables.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)

ALLOCATOR, VARIABLES = "server.program.allocator", "server.program.malloc_variables"
VARIABLE, GLIBC = "GLIBC_TUNABLES", "glibc"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
HEAP_ON_HUGE_PAGES, WITHOUT_RSEQ = "glibc.malloc.hugetlb=1", "glibc.pthread.rseq=0"

LEVER = Lever(
    name="glibc_tunables",
    title="heaps on huge pages, no restartable sequences",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    reads=(HUGE_PAGES,),
    facts=(ALLOCATOR, VARIABLES),
    order_after={"transparent_huge_pages": "without them a heap has none to ask for"},
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the tunables that could be given to the server at its start."""
    if ctx.known(ALLOCATOR) != GLIBC:
        return Skipped(LEVER.name, f"reported only: the server has {ctx.known(ALLOCATOR)}'s malloc")
    if _is_in_use(ctx):
        return Skipped(
            LEVER.name,
            f"reported only: the server was started with {VARIABLE}={ctx.known(VARIABLES)[VARIABLE]}",
        )
    has_huge_pages = ctx.value(HUGE_PAGES) != "never"
    setting = f"{VARIABLE}={':'.join([HEAP_ON_HUGE_PAGES] * has_huge_pages + [WITHOUT_RSEQ])}"
    advice = f"to try when it is started: {setting} (in a variant with env. before it)"
    return Skipped(LEVER.name, f"reported only: {advice}", (f"Environment={setting}",))


def _is_in_use(ctx: PlanContext) -> bool:
    return VARIABLE in ctx.known(VARIABLES)


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
