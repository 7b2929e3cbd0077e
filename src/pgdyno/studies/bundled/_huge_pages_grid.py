"""The grid of the study huge-pages: database sizes by clients, within a budget.

Sizes are around shared_buffers: while the data fit, page tables grow with the pages that each backend has
touched; with larger data, pages are replaced. Preset ``published`` has the settings and sizes of a study of
2018 (PostgreSQL 11, 56 hardware threads, 256 GB): shared_buffers of 64 GB, databases of 48 and 96 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.measure.bundled_study import Machine, Option, Sizing, last
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Workload

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

_MB, _GB = 1 << 20, 1 << 30
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
