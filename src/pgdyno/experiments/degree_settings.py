"""The number of workers to set for a query, and what it leaves to several clients that run it at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.experiments.scaling import ScalingCurve, scaling_curves
from pgdyno.model.experiment import Experiment
from pgdyno.model.scaling import Knee
from pgdyno.model.verdict import Interval

_OF_QUERIES, _OF_BUILDS = "max_parallel_workers_per_gather", "max_parallel_maintenance_workers"
_BUILDS = frozenset({"create-index"})  # loads that build something


@dataclass(frozen=True)
class AtOnce:
    """What several clients make at once with a number of workers each, relative to ``best`` workers.

    ``ratio`` of their rates; None: that number is the best.
    """

    load: str
    best: int
    ratio: Interval | None


@dataclass(frozen=True)
class DegreeSetting:
    """How many workers are as good as any for one query by itself; None: that is not certain yet.

    ``is_confirmed``: by rounds that had no part in the choice; else it is the upper end of the ``knee``.
    """

    load: str
    setting: str
    workers: int | None
    is_confirmed: bool
    knee: Knee
    at_once: tuple[AtOnce, ...]


def degree_settings(experiment: Experiment) -> tuple[DegreeSetting, ...]:
    """Return what to set for every query whose workers were varied; nothing where clients were."""
    curves = [one for one in scaling_curves(experiment) if one.unit == "workers"]
    alone = [one for one in curves if not any(_is_of(one, other) for other in curves)]
    return tuple(_setting(one, [other for other in curves if _is_of(other, one)]) for one in alone)


def _is_of(curve: ScalingCurve, other: ScalingCurve) -> bool:
    """Whether a curve is of the same query by several clients: ``sort, 2 clients at once`` is of ``sort``."""
    return curve.load.startswith(f"{other.load}, ") and curve.database_bytes == other.database_bytes


def _setting(curve: ScalingCurve, others: Sequence[ScalingCurve]) -> DegreeSetting:
    knee, confirmation = curve.scaling.knee, curve.confirmation
    is_confirmed = confirmation is not None and confirmation.is_confirmed
    workers = confirmation.level if confirmation is not None and is_confirmed else knee.high
    return DegreeSetting(
        curve.load,
        _OF_BUILDS if curve.load in _BUILDS else _OF_QUERIES,
        workers,
        is_confirmed,
        knee,
        () if workers is None else tuple(_at_once(workers, others)),
    )


def _at_once(workers: int, curves: Sequence[ScalingCurve]) -> Iterator[AtOnce]:
    for curve in curves:
        best = curve.scaling.best
        for level in curve.scaling.levels:
            if level.level == workers:
                yield AtOnce(curve.load, best, None if workers == best else level.ratio_to_best)
