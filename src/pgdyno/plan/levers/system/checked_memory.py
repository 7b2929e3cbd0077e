"""Checks of memory: pages, allocators, overcommitment."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    KB,
    MB,
    Check,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Risk,
    shared_memory_bytes,
    sysctl_path,
)

PAGE_BYTES, ARCHITECTURE = "host.memory.page_bytes", "host.cpu.architecture"
ARM, ORDINARY_BYTES = "aarch64", 4 * KB

ALLOCATOR, VARIABLES = "server.program.allocator", "server.program.malloc_variables"
TUNABLES, GLIBC = "GLIBC_TUNABLES", "glibc"
TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"
HEAP_ON_HUGE_PAGES, WITHOUT_RSEQ = "glibc.malloc.hugetlb=1", "glibc.pthread.rseq=0"
# Setting any of them ends glibc's own adjustment of the last, which then stays at 128 kB; 32 MB is its limit.
MALLOC_LIMITS = {
    "MALLOC_TOP_PAD_": 64 * MB,
    "MALLOC_TRIM_THRESHOLD_": 128 * MB,
    "MALLOC_MMAP_THRESHOLD_": 32 * MB,
}
# What is freed stays; blocks of up to 128 kB, larger than PostgreSQL's usual ones, are kept by each process.
OTHER_ALLOCATOR = (
    "or LD_PRELOAD=libjemalloc.so.2 with MALLOC_CONF=tcache_max:131072,dirty_decay_ms:-1,narenas:1"
)

POLICY = sysctl_path("vm.overcommit_memory")
LIMIT_KB, LIMIT_PERCENT = sysctl_path("vm.overcommit_kbytes"), sysctl_path("vm.overcommit_ratio")
STRICT = "2"

NODES = "host.cpu.numa_nodes"
IN_UNIT = ("NUMAPolicy=interleave", "NUMAMask=all")

CHOICE = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
GIVEN_UNASKED = ("always", "within_size", "force")
POOLS = "/sys/kernel/mm/hugepages/"


def _base_page_size(ctx: PlanContext) -> str:
    architecture = ctx.known(ARCHITECTURE)
    have = f"the kernel's pages are {numbers.size(ctx.known(PAGE_BYTES))}"
    if _has_large_pages(ctx):
        return f"{have}: fewer page table entries, and more memory for small things"
    if architecture != ARM:
        return f"{have}: kernels for {architecture} come with no others"
    return (
        f"{have}. Kernels with 64 kB are packages of their own (kernel-64k on Red Hat Enterprise Linux, "
        "linux-generic-64k on Ubuntu): install one, restart the machine, and measure with your workload"
    )


def _has_large_pages(ctx: PlanContext) -> bool:
    return bool(ctx.known(PAGE_BYTES) > ORDINARY_BYTES)


def _glibc_tunables(ctx: PlanContext) -> str:
    if ctx.known(ALLOCATOR) != GLIBC:
        return f"reported only: the server has {ctx.known(ALLOCATOR)}'s malloc"
    if _has_tunables(ctx):
        return f"reported only: the server was started with {TUNABLES}={ctx.known(VARIABLES)[TUNABLES]}"
    return f"reported only: to try when it is started: {_tunables(ctx)} (in a variant with env. before it)"


def _tunables(ctx: PlanContext) -> str:
    has_huge_pages = ctx.value(TRANSPARENT) != "never"
    return f"{TUNABLES}={':'.join([HEAP_ON_HUGE_PAGES] * has_huge_pages + [WITHOUT_RSEQ])}"


def _tunables_in_unit(ctx: PlanContext) -> tuple[str, ...]:
    is_worth_trying = ctx.known(ALLOCATOR) == GLIBC and not _has_tunables(ctx)
    return (f"Environment={_tunables(ctx)}",) if is_worth_trying else ()


def _has_tunables(ctx: PlanContext) -> bool:
    return TUNABLES in ctx.known(VARIABLES)


def _malloc(ctx: PlanContext) -> str:
    found = f"the server has {ctx.known(ALLOCATOR)}'s malloc"
    variables: Mapping[str, str] = ctx.known(VARIABLES)
    if variables:
        found += ", started with " + ", ".join(f"{name}={value}" for name, value in variables.items())
    if _has_own_malloc(ctx) or ctx.known(ALLOCATOR) != GLIBC:
        return f"reported only: {found}"
    tried = f"{' '.join(_malloc_limits())}, {OTHER_ALLOCATOR}"
    return (
        f"reported only: {found}; to try when it is started: {tried} (in a variant each with env. before it)"
    )


def _malloc_limits() -> list[str]:
    return [f"{name}={size_bytes}" for name, size_bytes in MALLOC_LIMITS.items()]


def _malloc_in_unit(ctx: PlanContext) -> tuple[str, ...]:
    if _has_own_malloc(ctx) or ctx.known(ALLOCATOR) != GLIBC:
        return ()
    return tuple(f"Environment={setting}" for setting in _malloc_limits())


def _has_own_malloc(ctx: PlanContext) -> bool:
    return bool(ctx.known(VARIABLES)) or ctx.known(ALLOCATOR) not in (GLIBC, "musl")


def _memory_overcommit(ctx: PlanContext) -> str:
    if _is_strict(ctx):
        return "strict already (vm.overcommit_memory = 2): an allocation above the limit is an error"
    left = f"vm.overcommit_memory stays at {ctx.value(POLICY)}: 2 is about stability, not speed"
    limit_bytes, proof = _limit_bytes(ctx), ctx.proof()
    if not limit_bytes or proof is None:
        return left
    fits = "which would fit" if proof.total_bytes <= limit_bytes else "which would not fit"
    return (
        f"{left}. All programs together could then reserve {numbers.size(limit_bytes)} and the swap space; "
        f"this server alone takes {numbers.size(proof.total_bytes)} at worst, {fits}"
    )


def _limit_bytes(ctx: PlanContext) -> int:
    """Return the reservable memory besides swap; huge pages do not count on either side.

    0 means that the kernel does not tell.
    """
    limit_bytes = int(ctx.value(LIMIT_KB) or 0) * KB
    percent = int(ctx.value(LIMIT_PERCENT) or 0)
    return limit_bytes or _ordinary_memory_bytes(ctx) * percent // 100


def _ordinary_memory_bytes(ctx: PlanContext) -> int:
    if ctx.host is None:
        return ctx.memory_bytes
    memory = ctx.host.memory
    pools = memory.huge_pages.or_else({})
    reserved_bytes = sum(pool.total * page_bytes for page_bytes, pool in pools.items())
    return memory.total_bytes.or_else(ctx.memory_bytes) - reserved_bytes


def _is_strict(ctx: PlanContext) -> bool:
    return ctx.value(POLICY) == STRICT


def _numa_interleave(ctx: PlanContext) -> str:
    nodes = ctx.known(NODES)
    if nodes == 1:
        return "reported only: one NUMA node, all memory is equally near"
    return (
        f"reported only: {nodes} NUMA nodes, and shared memory lies where it was touched first; to spread "
        f"it: {' and '.join(IN_UNIT)} in the unit's [Service], or start the server with "
        "numactl --interleave=all before the command"
    )


def _shmem_huge_pages(ctx: PlanContext) -> str:
    choice = ctx.value(CHOICE)
    if _is_given_unasked(ctx):
        told = "ShmemPmdMapped in /proc/PID/smaps says how much of the server's has them"
        return f"shared memory is given them (shmem_enabled = {choice}): {told}"
    left = f"shmem_enabled stays at {choice}"
    if _has_pool(ctx):
        return f"{left}: the pool holds the shared memory, and affects no other program"
    return (
        f"{left}: everything that shares memory would take them, and none are promised. Where no pool is to "
        f"be had, write within_size into {CHOICE}, restart the server and look at ShmemPmdMapped in "
        "/proc/PID/smaps"
    )


def _has_pool(ctx: PlanContext) -> bool:
    pool = ctx.resources.huge_pages.or_none()
    suffices = pool is not None and pool.usable * pool.page_bytes >= shared_memory_bytes(ctx.settings)
    return suffices or any(path.startswith(POOLS) for path in ctx.planned_files)


def _is_given_unasked(ctx: PlanContext) -> bool:
    return ctx.value(CHOICE) in GIVEN_UNASKED


def _never(_ctx: PlanContext) -> bool:
    return False


CHECKS = (
    Check(
        Lever(
            name="base_page_size",
            title="64 kB pages on Arm",
            layer=Layer.SYSTEM,
            risk=Risk.REBOOT,
            maturity=Maturity.PREVIEW,
            facts=(PAGE_BYTES, ARCHITECTURE),
        ),
        _base_page_size,
        _has_large_pages,
        "64 kB on 64-bit Arm, where small files and processes can spare the memory: a sixteenth of the page "
        "table entries for code, private memory and the file cache. It gives no leave to turn "
        "full_page_writes off. No figure of our own yet.",
        ("https://docs.kernel.org/arch/arm64/memory.html",),
    ),
    Check(
        Lever(
            name="glibc_tunables",
            title="heaps on huge pages, no restartable sequences",
            layer=Layer.SYSTEM,
            risk=Risk.RESTART,
            maturity=Maturity.PREVIEW,
            reads=(TRANSPARENT,),
            facts=(ALLOCATOR, VARIABLES),
            order_after={"transparent_huge_pages": "without them a heap has none to ask for"},
        ),
        _glibc_tunables,
        _has_tunables,
        "a heap on huge pages (glibc.malloc.hugetlb = 1) where backends sort and hash much, each of which "
        "then takes 2 MB at the first touch; no registration for restartable sequences (glibc.pthread.rseq "
        "= 0), which PostgreSQL has no use for, and tcmalloc has. 0 to 2 % by our estimate; not measured.",
        (
            "https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html",
            "https://www.gnu.org/software/libc/manual/html_node/POSIX-Thread-Tunables.html",
        ),
        _tunables_in_unit,
    ),
    Check(
        Lever(
            name="malloc",
            title="freed memory kept for the next sort",
            layer=Layer.SYSTEM,
            risk=Risk.RESTART,
            maturity=Maturity.PREVIEW,
            facts=(ALLOCATOR, VARIABLES),
        ),
        _malloc,
        _has_own_malloc,
        "an allocator that keeps large blocks which sorts and hash tables free, where there is memory for "
        "that in every backend. Not distinguishable with sysbench, 4 clients: glibc's limits +1.9 % (−2.2 "
        "to 6.2) read-only and +3.9 % (−0.2 to 8.1) read-write, jemalloc +0.7 % (−3.1 to 4.6) and +2.6 % "
        "(−1.8 to 7.1; docs/results).",
        (
            "https://www.gnu.org/software/libc/manual/html_node/Malloc-Tunable-Parameters.html",
            "https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html",
            "https://man7.org/linux/man-pages/man3/mallopt.3.html",
            "https://jemalloc.net/jemalloc.3.html",
        ),
        _malloc_in_unit,
    ),
    Check(
        Lever(
            name="memory_overcommit",
            title="no more memory promised than there is",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(POLICY, LIMIT_KB, LIMIT_PERCENT),
            needs=(Need.MEMORY,),
            order_after={"work_mem": "the server's worst case is compared with the limit"},
        ),
        _memory_overcommit,
        _is_strict,
        "strict accounting (vm.overcommit_memory = 2) where all programs of the machine are known: a "
        "backend that asks for too much gets an error, instead of the kernel killing one, after which the "
        "server restarts all of them. The limit is half of the memory as the kernel is installed "
        "(vm.overcommit_ratio = 50), and programs that reserve much and use little then fail to start. "
        "Nothing becomes faster.",
        (
            "https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-MEMORY-OVERCOMMIT",
            "https://docs.kernel.org/mm/overcommit-accounting.html",
        ),
    ),
    Check(
        Lever(
            name="numa_interleave",
            title="shared buffers spread over the NUMA nodes",
            layer=Layer.SYSTEM,
            risk=Risk.RESTART,
            maturity=Maturity.PREVIEW,
            facts=(NODES,),
        ),
        _numa_interleave,
        _never,  # /proc/PID/numa_maps would tell, but reading it walks all pages of a large server
        "shared memory on all nodes, for a server that does not fit on one with its CPUs: every start is "
        "then like every other. Private memory is spread as well. Remote memory cost 4.5 % with huge pages "
        "and 7 % without in a published TPROC-C run. No figure of our own yet.",
        (
            "https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#NUMAPolicy=",
            "https://docs.kernel.org/admin-guide/mm/numa_memory_policy.html",
            "https://n0derunner.com/notes-on-tuning-postgres-for-memory-benchmarks",
        ),
        lambda ctx: IN_UNIT if ctx.known(NODES) > 1 else (),
    ),
    Check(
        Lever(
            name="shmem_huge_pages",
            title="transparent huge pages for shared memory",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(CHOICE,),
            is_instant=True,
            order_after={"huge_page_pool": "a pool is certain; this is the next best"},
        ),
        _shmem_huge_pages,
        _is_given_unasked,
        "within_size where no pool of huge pages can be had, as in some containers. Everything that shares "
        "memory gets them too, and where memory is scattered the kernel takes 4 kB pages without a word. No "
        "figure of our own yet.",
        ("https://docs.kernel.org/admin-guide/mm/transhuge.html",),
    ),
)
