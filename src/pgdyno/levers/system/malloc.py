"""malloc: the server's memory allocator, and whether freed memory is kept; reported only.

What it does:
    Says whose malloc the postmaster has, and which environment variables it was started with that concern it.
    Backends inherit both.

Why it helps:
    Backends take and free large blocks for sorts and hash tables. glibc gives memory at the heap's end back
    to the kernel, which clears it again page by page at the next use: a minor fault each.

When it hurts:
    What is kept is missing elsewhere, in every backend. Another allocator takes more memory still.

How it is verified:
    The libraries that the postmaster has mapped, and its environment as it was started.

How it is undone:
    Nothing is changed: an environment is given at the start, by whoever starts the server.

Evidence:
    No published gain for short transactions was found. sysbench, 4 clients, CPUs awake: glibc's limits +1.9 %
    (−2.2 to 6.2) read-only and +3.9 % (−0.2 to 8.1) read-write, jemalloc +0.7 % (−3.1 to 4.6) and +2.6 %
    (−1.8 to 7.1): not distinguishable (docs/results). PostgreSQL's own memory contexts keep small blocks
    already. A patch that would have set glibc's limits was returned with feedback.

References:
    https://www.gnu.org/software/libc/manual/html_node/Malloc-Tunable-Parameters.html
    https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html
    https://man7.org/linux/man-pages/man3/mallopt.3.html
    https://jemalloc.net/jemalloc.3.html
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.levers._contract import (
    MB,
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
GLIBC = "glibc"

# Setting any of them ends glibc's own adjustment of the last, which then stays at 128 kB; 32 MB is its limit.
ADVICE = {
    "MALLOC_TOP_PAD_": 64 * MB,
    "MALLOC_TRIM_THRESHOLD_": 128 * MB,
    "MALLOC_MMAP_THRESHOLD_": 32 * MB,
}
# What is freed stays; blocks of up to 128 kB, larger than PostgreSQL's usual ones, are kept by each process.
OTHER_ALLOCATOR = (
    "or LD_PRELOAD=libjemalloc.so.2 with MALLOC_CONF=tcache_max:131072,dirty_decay_ms:-1,narenas:1"
)

LEVER = Lever(
    name="malloc",
    title="freed memory kept for the next sort",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    facts=(ALLOCATOR, VARIABLES),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the allocators that could be given to the server at its start."""
    found = f"the server has {ctx.known(ALLOCATOR)}'s malloc"
    variables: Mapping[str, str] = ctx.known(VARIABLES)
    if variables:
        found += ", started with " + ", ".join(f"{name}={value}" for name, value in variables.items())
    if _is_in_use(ctx) or ctx.known(ALLOCATOR) != GLIBC:
        return Skipped(LEVER.name, f"reported only: {found}")
    settings = [f"{name}={size_bytes}" for name, size_bytes in ADVICE.items()]
    tried = f"{' '.join(settings)}, {OTHER_ALLOCATOR}"
    advice = f"to try when it is started: {tried} (in a variant each with env. before it)"
    lines = tuple(f"Environment={setting}" for setting in settings)
    return Skipped(LEVER.name, f"reported only: {found}; {advice}", lines)


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(VARIABLES)) or ctx.known(ALLOCATOR) not in (GLIBC, "musl")


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
