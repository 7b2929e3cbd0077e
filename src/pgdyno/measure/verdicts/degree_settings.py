"""The number of workers to set for a query, and its effect on concurrent clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.measure.verdicts.scaling import ScalingCurve, scaling_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Knee
from pgdyno.model.experiments.verdict import Interval

QUERIES, BUILDS = "max_parallel_workers_per_gather", "max_parallel_maintenance_workers"
_PARTITION_WISE = ("enable_partitionwise_join", "enable_partitionwise_aggregate")
_BUILD = "create-index"  # the load that builds an index
_BY_PARTITIONS = "partition-wise"  # the load that also needs other settings


@dataclass(frozen=True)
class AtOnce:
    """The throughput of concurrent clients at a number of workers, relative to ``best`` workers.

    ``ratio`` None: that number is the best one, or was not measured with concurrent clients.
    """

    load: str
    best: int
    ratio: Interval | None
    is_measured: bool


@dataclass(frozen=True)
class DegreeSetting:
    """The fewest workers that are as good as any number for one query alone; None: uncertain yet.

    ``setting`` is the parameter to set; ``also`` are parameters that were on. ``is_confirmed``: by rounds
    that had no part in the choice; otherwise ``workers`` is the upper end of the ``knee``.
    """

    load: str
    setting: str
    also: tuple[str, ...]
    workers: int | None
    is_confirmed: bool
    knee: Knee
    at_once: tuple[AtOnce, ...]


def degree_settings(experiment: Experiment) -> tuple[DegreeSetting, ...]:
    """Return the settings for queries measured with varying workers; empty if clients varied."""
    curves = [one for one in scaling_curves(experiment) if one.unit == "workers"]
    alone = [one for one in curves if one.clients == 1]
    return tuple(_setting(one, [other for other in curves if _is_same_query(other, one)]) for one in alone)


def _is_same_query(curve: ScalingCurve, alone: ScalingCurve) -> bool:
    """Whether a curve is of the same query with several clients: ``sort, 2 clients at once`` of ``sort``."""
    return curve.load.startswith(f"{alone.load}, ") and curve.database_bytes == alone.database_bytes


def _setting(curve: ScalingCurve, others: Sequence[ScalingCurve]) -> DegreeSetting:
    knee, confirmation = curve.scaling.knee, curve.confirmation
    is_confirmed = confirmation is not None and confirmation.is_confirmed
    workers = confirmation.level if confirmation is not None and is_confirmed else knee.high
    return DegreeSetting(
        curve.load,
        BUILDS if curve.load == _BUILD else QUERIES,
        _PARTITION_WISE if curve.load == _BY_PARTITIONS else (),
        workers,
        is_confirmed,
        knee,
        () if workers is None else tuple(_at_once(workers, others)),
    )


def _at_once(workers: int, curves: Sequence[ScalingCurve]) -> Iterator[AtOnce]:
    for curve in curves:
        best, ratios = curve.scaling.best, {one.level: one.ratio_to_best for one in curve.scaling.levels}
        ratio = None if workers == best else ratios.get(workers)
        yield AtOnce(curve.load, best, ratio, is_measured=workers in ratios)
