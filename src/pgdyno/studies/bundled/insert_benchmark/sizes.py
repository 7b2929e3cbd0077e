"""Sizes of the Insert Benchmark: presets, and the server settings of each.

The published presets are those of Mark Callaghan's reports. Their configuration has ``synchronous_commit``
off: a crash can lose commits that were reported as done, so their variants are marked as not durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Option, Sizing, last
from pgdyno.postgres.guc import bytes_of

DEFAULT_PRESET = "quick"
CORRECTED, FAITHFUL = "corrected", "faithful"


def _rows(texts: tuple[str, ...]) -> tuple[int, int, int] | None:
    if not texts:
        return None
    parts = texts[-1].split("/")
    if len(parts) != len(_SIZED_STEPS) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UsageError(f'--rows "{texts[-1]}" is not X/Y/Z', hint="for example --rows 400000/100000/10000")
    x, y, z = (int(part) for part in parts)
    return x, y, z


def _seconds(texts: tuple[str, ...]) -> int | None:
    if not texts:
        return None
    if not texts[-1].isdecimal() or int(texts[-1]) < 1:
        raise UsageError(
            f'--step-seconds "{texts[-1]}" is not a number of seconds', hint="for example --step-seconds 30"
        )
    return int(texts[-1])


def _mode(texts: tuple[str, ...]) -> str:
    mode = texts[-1] if texts else CORRECTED
    if mode not in (CORRECTED, FAITHFUL):
        raise UsageError(f'no mode "{mode}"', hint=f"choose {CORRECTED} or {FAITHFUL}")
    return mode


PRESET = Option(
    "preset",
    "size of the benchmark. quick and io-bound-quick take minutes; cached-small, io-bound-small and ax162-s "
    "are published sizes with the published configuration, which is not durable [default: quick].",
    last,
)
ROWS = Option("rows", "rows per client of l.i0, l.i1, l.i2 [default: the preset's].", _rows, metavar="X/Y/Z")
STEP_SECONDS = Option(
    "step-seconds", "length of each query step [default: the preset's].", _seconds, metavar="SECONDS"
)
MODE = Option(
    "mode",
    "corrected: open loop and fixed time; faithful: like the original [default: corrected].",
    _mode,
    metavar=f"{CORRECTED}|{FAITHFUL}",
    usual=CORRECTED,
)
RATES = (100, 500, 1000)  # of the query steps: rows inserted per second and client; as many are deleted
ROWS_PER_COMMIT: Mapping[str, int] = MappingProxyType({"l.i0": 100, "l.x": 100, "l.i1": 50, "l.i2": 5})

_BYTES_PER_LOADED_ROW = 205
_BYTES_PER_REPLACED_ROW = 160
"""Bytes on disk of a loaded row with its four indexes, and bytes that each replaced row adds before vacuum.

Measured on PostgreSQL 18: 3,000,000 loaded rows took 604 MiB after all ten steps; 300,000 rows of which
920,000 were replaced by l.i1 and l.i2 took 203 MiB."""

_WAL_SHARE = 1.5  # of max_wal_size: a soft limit that heavy writes exceed
_DEFAULT_MAX_WAL_SIZE = "1GB"  # PostgreSQL's default
_EMPTY_CLUSTER_BYTES = 64 << 20
_SIZED_STEPS = ("l.i0", "l.i1", "l.i2")  # the steps of --rows
_IO_BOUND_FROM = 2  # times the servers' memory: arbitrary; most of less data would be in the page cache


@dataclass(frozen=True)
class Size:
    """Size of the benchmark. Rows are per client: of l.i0, l.i1 and l.i2.

    ``wait_s`` is the time from the beginning of the clean-up to the start of the query steps; None: as
    published.
    """

    preset: str
    clients: int
    rows: tuple[int, int, int]
    step_s: int  # length of each of the query steps
    wait_s: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)  # of the server; factors override them
    server_memory_bytes: int | None = None
    is_faithful: bool = False
    max_wal_sizes: tuple[str, ...] = ()  # of the variants, if a factor sets it

    @property
    def table_rows(self) -> int:
        """Rows of all tables from l.i0 on: later steps delete as many as they insert."""
        return self.clients * self.rows[0]

    @property
    def settle_s(self) -> float:
        """Time in seconds for vacuum and checkpoint."""
        return self.published_wait_s if self.wait_s is None else self.wait_s

    @property
    def published_wait_s(self) -> float:
        """Published time in seconds for vacuum and checkpoint; it grows with the tables."""
        return min(1200.0, 60 + self.table_rows / 1e6)

    @property
    def loaded_bytes(self) -> int:
        """Bytes on disk of the tables and indexes after l.x, by the measured row size."""
        return self.table_rows * _BYTES_PER_LOADED_ROW

    @property
    def is_too_small(self) -> bool:
        """Whether the data are too small, relative to the servers' memory limit, to be IO-bound."""
        limit_bytes = self.server_memory_bytes
        return limit_bytes is not None and self.loaded_bytes < _IO_BOUND_FROM * limit_bytes

    @property
    def made_bytes(self) -> int:
        """Maximum bytes on disk of the tables and indexes, by the measured row size."""
        _, *written = self.rows
        replaced = self.clients * (sum(written) + 2 * sum(RATES) * self.step_s)
        return self.loaded_bytes + replaced * _BYTES_PER_REPLACED_ROW

    @property
    def disk_bytes(self) -> int:
        """Maximum bytes on disk of one server."""
        wal_sizes = self.max_wal_sizes or (self.settings.get("max_wal_size", _DEFAULT_MAX_WAL_SIZE),)
        max_wal_bytes = max(bytes_of(size, "MB") for size in wal_sizes)
        return self.made_bytes + int(_WAL_SHARE * max_wal_bytes) + _EMPTY_CLUSTER_BYTES

    @property
    def label(self) -> str:
        """Mode and size in words; figures are comparable only if both are equal."""
        mode = _FAITHFUL if self.is_faithful else _CORRECTED
        rows = "/".join(str(count) for count in self.rows)
        clients = "1 client" if self.clients == 1 else f"{self.clients} clients"
        memory = f", {numbers.size(self.server_memory_bytes)} of memory" if self.server_memory_bytes else ""
        return (
            f"Insert Benchmark, {mode}; preset {self.preset}, {clients}, {rows} rows each in l.i0/l.i1/l.i2, "
            f"q steps of {self.step_s} s{memory}"
        )


_CORRECTED = (
    "corrected mode: clients start together, q steps end by time, their inserts and deletes arrive as an "
    "open loop, latency counts from the intended start"
)
_FAITHFUL = (
    "faithful mode: inserts and deletes of q steps come in bursts once a second without catching up, in "
    "lockstep by queues of 8; every step ends by its number of rows, latency counts from the real start"
)

_PUBLISHED: Mapping[str, str] = {
    "huge_pages": "off",
    "max_parallel_workers_per_gather": "0",
    "max_parallel_workers": "0",
    "checkpoint_warning": "1800s",
    "wal_sync_method": "fdatasync",
    "wal_level": "replica",
    "full_page_writes": "on",
    "track_io_timing": "on",
    "synchronous_commit": "off",
    "bgwriter_lru_maxpages": "2000",
    "wal_compression": "off",
    "log_autovacuum_min_duration": "0",
    "checkpoint_timeout": "1800s",
    "checkpoint_completion_target": "0.9",
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_cost_delay": "1ms",
    "autovacuum_vacuum_cost_limit": "4000",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_vacuum_insert_scale_factor": "0.05",
    # The files for 16 and 17 set it, those for 18 beta 1 on the small server do not, which confounds
    # comparisons of these versions. Here it is the same for all versions that have it.
    "vacuum_buffer_usage_limit": "256MB",
    "jit": "off",
}
"""Common part of the files conf.diff.cx10*. Source: mytools, bench/conf/arc/may25.hetzner and may25.pg18."""

_C8R32 = {
    **_PUBLISHED,
    "shared_buffers": "23GB",
    "bgwriter_delay": "100ms",
    "max_wal_size": "40GB",
    "min_wal_size": "20GB",
    "autovacuum_max_workers": "4",
    "autovacuum_work_mem": "256MB",
}
_C32R128 = {
    **_PUBLISHED,
    "shared_buffers": "96GB",
    "bgwriter_delay": "50ms",
    "max_wal_size": "96GB",
    "min_wal_size": "48GB",
    "autovacuum_max_workers": "8",
    "autovacuum_work_mem": "1024MB",
}

PRESETS: Mapping[str, Size] = MappingProxyType(
    {
        size.preset: size
        for size in (
            # Fits two CPUs: about a minute per pass.
            Size("quick", clients=2, rows=(400_000, 40_000, 10_000), step_s=6, wait_s=3.0),
            # The same on 0.4 GiB of data, with less than a quarter of that as memory: two minutes per pass.
            # Less memory is insufficient for index builds and thirty processes.
            Size(
                "io-bound-quick",
                clients=2,
                rows=(1_000_000, 20_000, 5_000),
                step_s=6,
                wait_s=3.0,
                settings={"shared_buffers": "24MB", "maintenance_work_mem": "8MB"},
                server_memory_bytes=96 << 20,
            ),
            # The small server has 8 CPUs and 32 GB. Sizes of these two, and the 1800 s:
            # https://smalldatum.blogspot.com/2026/03/the-insert-benchmark-on-small-server.html
            Size("cached-small", 1, (30_000_000, 40_000_000, 10_000_000), step_s=1800, settings=_C8R32),
            Size(
                "io-bound-small",
                1,
                (800_000_000, 4_000_000, 1_000_000),
                step_s=1800,
                settings=_C8R32,
                server_memory_bytes=32 << 30,
            ),
            # Hetzner's ax162-s has 48 CPUs and 128 GB. 20 clients with 200 million rows each, IO-bound:
            # https://smalldatum.blogspot.com/2026/03/mariadb-innovation-binlogstorageengine.html
            Size(
                "ax162-s",
                20,
                (200_000_000, 4_000_000, 1_000_000),
                step_s=1800,
                settings=_C32R128,
                server_memory_bytes=128 << 30,
            ),
        )
    }
)


def size_of(sizing: Sizing) -> Size:
    """Return the requested size: a preset with the requested changes.

    Raises: UsageError for an unknown preset, or for numbers of rows that are not whole statements.
    """
    requested = sizing.of(PRESET)
    name = DEFAULT_PRESET if requested is None else requested
    if name not in PRESETS:
        raise UsageError(f'the Insert Benchmark has no preset "{name}"', hint=f"known: {', '.join(PRESETS)}")
    if rows := sizing.of(ROWS):
        _require_whole_statements(rows)
    preset = PRESETS[name]
    size = replace(
        preset,
        clients=sizing.clients or preset.clients,
        rows=rows or preset.rows,
        step_s=sizing.of(STEP_SECONDS) or preset.step_s,
        is_faithful=sizing.of(MODE) == FAITHFUL,
        max_wal_sizes=sizing.max_wal_sizes,
    )
    return replace(size, wait_s=_wait_s(preset, size))


def _wait_s(preset: Size, size: Size) -> float | None:
    """Return a preset's short wait, scaled with the size of the tables, at most the published wait."""
    growth = size.table_rows / preset.table_rows
    if preset.wait_s is None or growth <= 1:
        return preset.wait_s
    return max(preset.wait_s, min(preset.wait_s * growth, size.published_wait_s))


def _require_whole_statements(rows: tuple[int, int, int]) -> None:
    """Raise UsageError if rows are no multiple of a statement's: surplus rows would not be counted."""
    batches = [ROWS_PER_COMMIT[step] for step in _SIZED_STEPS]
    for step, batch, count in zip(_SIZED_STEPS, batches, rows, strict=True):
        if count % batch:
            whole = "/".join(str(-(-one // size) * size) for one, size in zip(rows, batches, strict=True))
            raise UsageError(
                f"{step} inserts {batch} rows per statement, and {count} is not a multiple of that",
                hint=f"the next larger size is --rows {whole}",
            )
