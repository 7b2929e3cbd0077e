"""Checks of memory: page sizes, allocators, overcommit."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    KB,
    MB,
    Check,
    Layer,
    Lever,
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
# Setting any of them ends glibc's dynamic adjustment of the last, which then stays at 128 kB; 32 MB is its
# maximum.
MALLOC_LIMITS = {
    "MALLOC_TOP_PAD_": 64 * MB,
    "MALLOC_TRIM_THRESHOLD_": 128 * MB,
    "MALLOC_MMAP_THRESHOLD_": 32 * MB,
}
# Keeps freed memory; each process caches blocks of up to 128 kB, larger than PostgreSQL's usual ones.
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
        return f"{have}: fewer page table entries, but more memory for small allocations"
    if architecture != ARM:
        return f"{have}: kernels for {architecture} offer no other size"
    return (
        f"{have}. Kernels with 64 kB are separate packages (kernel-64k on Red Hat Enterprise Linux, "
        "linux-generic-64k on Ubuntu): install one, reboot, and measure with your workload"
    )


def _has_large_pages(ctx: PlanContext) -> bool:
    return bool(ctx.known(PAGE_BYTES) > ORDINARY_BYTES)


def _glibc_tunables(ctx: PlanContext) -> str:
    if ctx.known(ALLOCATOR) != GLIBC:
        return f"reported only: the server uses {ctx.known(ALLOCATOR)}'s malloc"
    if _has_tunables(ctx):
        return f"reported only: the server was started with {TUNABLES}={ctx.known(VARIABLES)[TUNABLES]}"
    return f"reported only: to try at the server's start: {_tunables(ctx)} (in a variant, prefixed with env.)"


def _tunables(ctx: PlanContext) -> str:
    has_huge_pages = ctx.value(TRANSPARENT) != "never"
    return f"{TUNABLES}={':'.join([HEAP_ON_HUGE_PAGES] * has_huge_pages + [WITHOUT_RSEQ])}"


def _tunables_in_unit(ctx: PlanContext) -> tuple[str, ...]:
    is_worth_trying = ctx.known(ALLOCATOR) == GLIBC and not _has_tunables(ctx)
    return (f"Environment={_tunables(ctx)}",) if is_worth_trying else ()


def _has_tunables(ctx: PlanContext) -> bool:
    return TUNABLES in ctx.known(VARIABLES)


def _malloc(ctx: PlanContext) -> str:
    found = f"the server uses {ctx.known(ALLOCATOR)}'s malloc"
    variables: Mapping[str, str] = ctx.known(VARIABLES)
    if variables:
        found += ", started with " + ", ".join(f"{name}={value}" for name, value in variables.items())
    if _has_own_malloc(ctx) or ctx.known(ALLOCATOR) != GLIBC:
        return f"reported only: {found}"
    tried = f"{' '.join(_malloc_limits())}, {OTHER_ALLOCATOR}"
    return f"reported only: {found}; to try at the server's start: {tried} (in a variant, prefixed with env.)"


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
        return "already strict (vm.overcommit_memory = 2): an allocation above the limit fails"
    left = f"vm.overcommit_memory stays at {ctx.value(POLICY)}: 2 improves stability, not speed"
    limit_bytes, proof = _limit_bytes(ctx), ctx.proof()
    if not limit_bytes or proof is None:
        return left
    fits = "which would fit" if proof.total_bytes <= limit_bytes else "which would not fit"
    return (
        f"{left}. With 2, all programs together can reserve {numbers.size(limit_bytes)} plus the swap space; "
        f"the worst case of this server alone is {numbers.size(proof.total_bytes)}, {fits}"
    )


def _limit_bytes(ctx: PlanContext) -> int:
    """Return the reservable memory without swap; huge pages are excluded from limit and use.

    0 if the kernel does not report it.
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
        return "reported only: one NUMA node, all memory is local"
    return (
        f"reported only: {nodes} NUMA nodes, and shared memory is placed at its first use; to spread "
        f"it: {' and '.join(IN_UNIT)} in the unit's [Service], or start the server with "
        "numactl --interleave=all before the command"
    )


def _shmem_huge_pages(ctx: PlanContext) -> str:
    choice = ctx.value(CHOICE)
    if _is_enabled(ctx):
        amount = "ShmemPmdMapped in /proc/PID/smaps shows how much of the server's does"
        return f"shared memory can use them (shmem_enabled = {choice}): {amount}"
    left = f"shmem_enabled stays at {choice}"
    if _has_pool(ctx):
        return f"{left}: the pool holds the shared memory, and affects no other program"
    return (
        f"{left}: all shared memory on the machine would use them, without any guarantee. If a pool is not "
        f"possible, write within_size to {CHOICE}, restart the server and check ShmemPmdMapped in "
        "/proc/PID/smaps"
    )


def _has_pool(ctx: PlanContext) -> bool:
    pool = ctx.resources.huge_pages.or_none()
    suffices = pool is not None and pool.usable * pool.page_bytes >= shared_memory_bytes(ctx.settings)
    return suffices or any(path.startswith(POOLS) for path in ctx.planned_files)


def _is_enabled(ctx: PlanContext) -> bool:
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
            facts=(PAGE_BYTES, ARCHITECTURE),
        ),
        _base_page_size,
        _has_large_pages,
        "64 kB on 64-bit Arm, if there is enough memory for the overhead of small files and processes: 1/16 "
        "of the page table entries for code, private memory and the file cache. full_page_writes must stay "
        "on regardless. Not yet measured by pgdyno.",
        ("https://docs.kernel.org/arch/arm64/memory.html",),
    ),
    Check(
        Lever(
            name="glibc_tunables",
            title="heaps on huge pages, no restartable sequences",
            layer=Layer.SYSTEM,
            risk=Risk.RESTART,
            reads=(TRANSPARENT,),
            facts=(ALLOCATOR, VARIABLES),
            order_after={"transparent_huge_pages": "without them a heap cannot use huge pages"},
        ),
        _glibc_tunables,
        _has_tunables,
        "a heap on huge pages (glibc.malloc.hugetlb = 1) if backends sort and hash a lot; each backend then "
        "takes 2 MB at its first access. No registration for restartable sequences (glibc.pthread.rseq = 0), "
        "which tcmalloc uses, but PostgreSQL does not. Estimated 0 to 2 %; not measured.",
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
            facts=(ALLOCATOR, VARIABLES),
        ),
        _malloc,
        _has_own_malloc,
        "an allocator that keeps the large blocks freed by sorts and hash tables, if there is memory for "
        "that in every backend. No distinguishable effect with sysbench, 4 clients: glibc's limits +1.9 % "
        "(−2.2 to 6.2) read-only and +3.9 % (−0.2 to 8.1) read-write, jemalloc +0.7 % (−3.1 to 4.6) and "
        "+2.6 % (−1.8 to 7.1; docs/results).",
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
            title="strict memory accounting",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(POLICY, LIMIT_KB, LIMIT_PERCENT),
            needs=(Need.MEMORY,),
            order_after={"work_mem": "the server's worst case is compared with the limit"},
        ),
        _memory_overcommit,
        _is_strict,
        "strict accounting (vm.overcommit_memory = 2) if all programs on the machine are known: an excessive "
        "allocation fails with an error in one backend; otherwise the kernel kills a backend, and the "
        "server then restarts all of them. By default the limit is half of the memory "
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
            facts=(NODES,),
        ),
        _numa_interleave,
        _never,  # /proc/PID/numa_maps would show it, but reading it walks all pages of a large server
        "shared memory on all nodes, for a server too large for the memory and CPUs of one node: the "
        "placement is then the same after every start. Private memory is spread as well. Remote memory cost "
        "4.5 % with huge pages and 7 % without in a published TPROC-C run. Not yet measured by pgdyno.",
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
            reads=(CHOICE,),
            is_instant=True,
            order_after={"huge_page_pool": "a pool guarantees huge pages; this is the second choice"},
        ),
        _shmem_huge_pages,
        _is_enabled,
        "within_size if no pool of huge pages is possible, as in some containers. All shared memory on the "
        "machine uses them too, and if memory is fragmented the kernel silently uses 4 kB pages. Not yet "
        "measured by pgdyno.",
        ("https://docs.kernel.org/admin-guide/mm/transhuge.html",),
    ),
)
