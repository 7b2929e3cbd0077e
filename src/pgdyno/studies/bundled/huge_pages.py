"""Huge pages: server memory on 4 kB, 2 MB and 1 GB pages, by database size and clients.

All servers have the same settings except for their pages. A pool of reserved pages has exactly the pages that
the servers using it need, so no other server gets one by accident. Transparent huge pages are switched at
each turn: for shared memory (shmem_enabled) in one arm, for private memory in another.

The grid of the study huge-pages: database sizes by clients, within a budget.

Sizes are around shared_buffers: while the data fit, page tables grow with the pages that each backend has
touched; with larger data, pages are replaced. Preset ``published`` has the settings and sizes of a study of
2018 (PostgreSQL 11, 56 hardware threads, 256 GB): shared_buffers of 64 GB, databases of 48 and 96 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.measure.bundled_study import (
    BundledStudy,
    Machine,
    Option,
    PageSupport,
    Pool,
    Sizing,
    StudyContext,
    last,
)
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant

DEFAULT_PRESET, PUBLISHED_PRESET = "scaled", "published"
PRESET = Option(
    "preset",
    "scaled to the machine, or published, for 256 GB of memory [default: scaled].",
    last,
    is_of_own_servers=True,
)
ARMS = 5  # 4 kB, transparent for shared or for private memory, 2 MB, 1 GB
# Turns of 50 ms; a block holds six balanced squares of five arms. The warm-up is long, because every backend
# touches the pages of shared memory for the first time: with 4 kB pages this takes seconds.
DESIGN = Design(block_s=7.5, blocks_per_round=1, warmup_s=4.0)

_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
_MEMORY_SHARE = 0.7  # of the available memory, for all servers with their data in the page cache
_STEP_BYTES = 128 * _MB
_CLIENTS_PER_CPU = 8
_SIZES = (0.5, 1.0, 2.0)  # of the database, relative to shared_buffers
_SPARE_CONNECTIONS = 20
_PUBLISHED_SIZES = (48 * _GB, 96 * _GB)
_PUBLISHED: Mapping[str, str] = {
    "shared_buffers": "64GB",
    "work_mem": "1GB",
    "random_page_cost": "1",
    "seq_page_cost": "1",
    "maintenance_work_mem": "2GB",
    "synchronous_commit": "on",
    "max_wal_size": "100GB",
    "min_wal_size": "1GB",
    "checkpoint_timeout": "10min",
    "checkpoint_completion_target": "0.9",
    "autovacuum_vacuum_scale_factor": "0.4",
    "effective_cache_size": "200GB",
    "wal_compression": "on",
}

# Rough figures, used only to select cells for a budget; the rest of the budget goes into more rounds.
_COPIED_BYTES_PER_S = 250e6
_STARTED_BYTES_PER_S = 500e6
_BETWEEN_CELLS_S = 2.0


@dataclass(frozen=True)
class HugePagesGrid:
    """The cells to measure, and those that exceed the budget.

    A cell is a load at one database size and number of clients.
    """

    settings: Mapping[str, str]
    cells: tuple[Workload, ...]
    left_out: tuple[Workload, ...]


def grid_of(sizing: Sizing) -> HugePagesGrid:
    """Return the grid for a machine. Raises: UsageError for an unknown preset; MemoryProofError."""
    buffers_bytes, settings, sizes = _preset(sizing)
    clients = (sizing.clients,) if sizing.clients else client_counts(sizing.machine)
    connections = max(100, max(clients) + _SPARE_CONNECTIONS)
    own = {"shared_buffers": f"{buffers_bytes // _MB}MB", "max_connections": str(connections)}
    wanted = tuple(_cells(sizing.loads, sizes, clients))
    count = len(wanted) if sizing.budget_s is None else _fitting(wanted, sizing.budget_s / sizing.rounds)
    return HugePagesGrid({**settings, **own}, wanted[:count], wanted[count:])


def client_counts(machine: Machine) -> tuple[int, ...]:
    """Return 1, 2, 4, … up to eight per CPU."""
    counts, most = [1], _CLIENTS_PER_CPU * machine.cpus
    while counts[-1] * 2 <= most:
        counts.append(counts[-1] * 2)
    return tuple(counts if counts[-1] == most else [*counts, most])


def cell_name(load: Workload, database_bytes: int, clients: int) -> str:
    """Return ``select-512MB-4``: its load, size and clients."""
    return f"{load.name.removeprefix('pgbench-')}-{database_bytes // _MB}MB-{clients}"


def _preset(sizing: Sizing) -> tuple[int, Mapping[str, str], tuple[int, ...]]:
    """Return shared_buffers in bytes, the other settings, and the sizes of the database in bytes."""
    requested = sizing.of(PRESET)
    name = DEFAULT_PRESET if requested is None else requested
    if name == PUBLISHED_PRESET:
        return 64 * _GB, _PUBLISHED, _PUBLISHED_SIZES
    if name != DEFAULT_PRESET:
        raise UsageError(
            f'the study huge-pages has no preset "{name}"',
            hint=f"choose {DEFAULT_PRESET} or {PUBLISHED_PRESET}",
        )
    share_bytes = _MEMORY_SHARE * sizing.machine.available_bytes / (ARMS * (1 + max(_SIZES)))
    buffers_bytes = int(share_bytes) // _STEP_BYTES * _STEP_BYTES
    if buffers_bytes == 0:
        raise MemoryProofError(
            "not enough free memory for the servers of this study",
            detail=f"{ARMS} servers with {_STEP_BYTES // _MB} MB of shared_buffers each and data twice as "
            f"large do not fit into the available {numbers.size(sizing.machine.available_bytes)}",
            hint="run it on a host with more free memory",
        )
    # One checkpoint at the end of a round, none before.
    settings = {"max_wal_size": "16GB", "checkpoint_timeout": "1h"}
    return buffers_bytes, settings, tuple(int(factor * buffers_bytes) for factor in _SIZES)


def _cells(
    loads: tuple[Workload, ...], sizes: tuple[int, ...], clients: tuple[int, ...]
) -> Iterator[Workload]:
    """Yield the cells, most informative first: most clients, one client, then the counts between."""
    most, *fewer = sorted(clients, reverse=True)
    for count in (most, *fewer[-1:], *fewer[:-1]):
        for load in loads:
            for size_bytes in sizes:
                yield _cell(load, size_bytes, count)


def _cell(load: Workload, database_bytes: int, clients: int) -> Workload:
    scale = max(1, round(database_bytes / load.data_set.bytes_per_scale))
    return replace(
        load,
        name=cell_name(load, database_bytes, clients),
        data_set=replace(load.data_set, scale=scale),
        issued_as=load.name,
        clients=clients,
    )


def _fitting(cells: tuple[Workload, ...], budget_s: float) -> int:
    """Return how many cells fit into the budget of a round; at least one."""
    count = 1
    while count < len(cells) and round_s(cells[: count + 1]) <= budget_s:
        count += 1
    return count


def round_s(cells: tuple[Workload, ...]) -> float:
    """Return the estimated duration of a round of these cells, in seconds."""
    data_sets = {cell.data_set.key: cell.data_set.size_bytes for cell in cells}
    written = {cell.data_set.key for cell in cells if not cell.is_read_only}
    started_s = sum(ARMS * size / _STARTED_BYTES_PER_S for size in data_sets.values())
    copied_s = sum(ARMS * data_sets[key] / _COPIED_BYTES_PER_S for key in written)
    cell_s = DESIGN.block_s + ARMS * DESIGN.warmup_s + _BETWEEN_CELLS_S
    return len(cells) * cell_s + started_s + copied_s


PRIVATE = "/sys/kernel/mm/transparent_hugepage/enabled"
SHARED = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
NEVER, ALWAYS = "never", "always"
_YOUNG = (
    "huge-pages: the clients of every cell connected only seconds before. With 4 kB pages many still touch "
    "pages of shared memory for the first time (see minor page faults); long-lived connections no longer do, "
    "and gain less"
)


def workloads(sizing: Sizing) -> Mapping[str, Workload]:
    """Return the cells that fit into the budget. Raises: UsageError, MemoryProofError."""
    return {cell.name: cell for cell in grid_of(sizing).cells}


def settings(sizing: Sizing) -> Mapping[str, str]:
    """Return the common settings of all servers, without those of their pages."""
    return grid_of(sizing).settings


def study(context: StudyContext) -> Study:
    """Return an arm per available kind of page. Raises: UsageError if only one kind is available."""
    pages = context.pages
    assert pages is not None  # noqa: S101 — the study needs it
    variants = tuple(_variants(context.baseline, pages))
    missing = tuple(_missing(pages))
    if len(variants) == 1:
        raise UsageError("huge pages are not available here", detail="; ".join(missing))
    return Study(
        name="huge-pages",
        question="What are huge pages worth for shared memory, by size of the database and clients?",
        variants=variants,
        workloads=context.workloads,
        design=context.design,
        notes=(*missing, *_left_out(context.sizing), *_published(context.sizing), _YOUNG),
    )


def _variants(baseline: Variant, pages: PageSupport) -> Iterator[Variant]:
    """Yield the variants; the first, 4 kB pages, is the baseline."""
    plain = {
        **{path: NEVER for path, choices in pages.choices.items() if NEVER in choices},
        **{pool.path: str(pool.found) for pool in pages.pools.values() if pool.obstacle is None},
    }
    small = {**baseline.settings, "huge_pages": "off", **plain}
    yield replace(baseline, name="4kB", settings=small)
    for name, path in (("thp-shared", SHARED), ("thp-private", PRIVATE)):
        if ALWAYS in pages.choices.get(path, ()):
            yield replace(baseline, name=name, settings={**small, path: ALWAYS})
    for size_bytes, pool in sorted(pages.pools.items()):
        if pool.obstacle is None:
            yield replace(baseline, name=_size(size_bytes), settings={**small, **_on(size_bytes, pool)})


def _on(size_bytes: int, pool: Pool) -> dict[str, str]:
    return {
        "huge_pages": "on",
        "huge_page_size": f"{size_bytes // _KB}kB",
        pool.path: str(pool.wanted),
    }


def _size(size_bytes: int) -> str:
    unit, name = next(one for one in ((_GB, "GB"), (_MB, "MB"), (_KB, "kB")) if size_bytes >= one[0])
    return f"{size_bytes // unit}{name}"


def _missing(pages: PageSupport) -> Iterator[str]:
    """Yield the unavailable kinds of page, with the reasons."""
    for size_bytes, pool in sorted(pages.pools.items()):
        if pool.obstacle is not None:
            yield f"pages of {_size(size_bytes)} are left out: {pool.obstacle}"
    for size_bytes in (2 * _MB, _GB):
        if size_bytes not in pages.pools:
            yield f"pages of {_size(size_bytes)} are left out: this kernel does not support them on this CPU"
    for path, what in ((SHARED, "shared"), (PRIVATE, "private")):
        if ALWAYS not in pages.choices.get(path, ()):
            yield f"transparent huge pages for {what} memory are left out: this kernel has no {path}"


def _left_out(sizing: Sizing) -> Iterator[str]:
    left_out = grid_of(sizing).left_out
    if left_out and sizing.budget_s is not None:
        names = ", ".join(cell.name for cell in left_out)
        yield f"left out because of the budget of {sizing.budget_s / 60:.0f} minutes: {names}"


def _published(sizing: Sizing) -> Iterator[str]:
    if sizing.of(PRESET) == PUBLISHED_PRESET:
        yield (
            "settings and sizes as published for PostgreSQL 11 in 2018, where every cell was the mean of "
            "three runs of 30 minutes: --block 30m gives blocks of this length"
        )


STUDY = BundledStudy(
    title="pages of 4 kB against transparent, 2 MB and 1 GB huge pages, by database size and clients",
    study=study,
    measures=("pgbench-select", "pgbench-tpcb"),
    workloads=workloads,
    settings=settings,
    design=DESIGN,
    budget_s=45 * 60.0,
    options=(PRESET,),
    needs_page_support=True,
)
