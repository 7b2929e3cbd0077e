"""PostgreSQL 18's I/O methods: synchronous (sync), worker processes, io_uring.

The methods differ for scans that read ahead: sequential scans and bitmap heap scans. Index scans and lookups
of single rows do not read ahead in 18, and data in shared_buffers are not read at all: no difference is the
expected result for these.

If a quarter of the CPUs is more than the default of three, an additional arm has that many io_workers.
Source: vondra.me/posts/tuning-aio-in-postgresql-18.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import BundledStudy, IoSupport, Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant

_WORKLOADS = tuple(
    f"scan-{what}-{where}"
    for where in ("cached", "io-bound")
    for what in ("sequential", "bitmap", "index", "point")
)
# Slices hold at least ten scans per client, and blocks a balanced square of three arms.
_DESIGN = Design(slice_s=0.4, head_s=0.02, block_s=3.6, blocks_per_round=1, warmup_s=0.5)

_SINCE = 18
_DEFAULT_WORKERS, _MAX_WORKERS = 3, 32
_CPUS_PER_WORKER = 4
_CONDITIONS = (
    "io-method: every scan runs in one process (max_parallel_workers_per_gather = 0); shared_buffers, "
    "effective_io_concurrency and io_combine_limit are equal in all arms"
)
_TURNS = (
    "io-method: a turn begins without running scans. If a scan takes more than a tenth of a turn, this makes "
    "the slower arm look even slower; use longer turns: --slice 1s"
)
_CPU = "io-method: server CPU time includes I/O workers and kernel threads of io_uring"


def settings(_sizing: Sizing) -> Mapping[str, str]:
    """Return the settings of all variants: plans without parallel workers."""
    return {"max_parallel_workers_per_gather": "0"}


def study(context: StudyContext) -> Study:
    """Return sync against every usable method, on every server. Raises: UsageError for a server before 18."""
    for io in context.io:
        if io.major < _SINCE:
            raise UsageError(
                f"{io.server} has no io_method: it came with PostgreSQL {_SINCE}",
                hint=f"name a newer server, or build one: pgdyno server install --from-source {_SINCE} "
                "--with-liburing",
            )
    common, servers = context.baseline.settings, dict.fromkeys(io.server for io in context.io)
    left_out = dict.fromkeys(
        f"io_uring is left out on {io.server}: {io.io_uring_obstacle}"
        for io in context.io
        if io.io_uring_obstacle is not None
    )
    return Study(
        name="io-method",
        question=f"Which io_method serves scans best on {' and '.join(servers)}?",
        variants=tuple(
            Variant(name, {**common, **own}, io.named)
            for io in context.io
            for name, own in _methods(io).items()
        ),
        workloads=context.workloads,
        design=context.design,
        notes=(_CONDITIONS, _TURNS, _CPU, *left_out),
    )


def _methods(io: IoSupport) -> dict[str, dict[str, str]]:
    """Return the settings of every arm that a server supports, the baseline first."""
    methods = {"sync": {"io_method": "sync"}, "worker": {"io_method": "worker"}}
    by_cpus = min(_MAX_WORKERS, io.cpus // _CPUS_PER_WORKER)
    if by_cpus > _DEFAULT_WORKERS:
        methods[f"worker-{by_cpus}"] = {"io_method": "worker", "io_workers": str(by_cpus)}
    if io.io_uring_obstacle is None:
        methods["io_uring"] = {"io_method": "io_uring"}
    return methods


STUDY = BundledStudy(
    title="io_method: sync against worker and io_uring (PostgreSQL 18 and later)",
    study=study,
    measures=_WORKLOADS,
    settings=settings,
    design=_DESIGN,
    needs_io_support=True,
)
