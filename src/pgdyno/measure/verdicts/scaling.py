"""Throughput scaling with clients or workers: one curve per load and database size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, geometric_mean

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.metric import CLIENT_CPU, SERVER_CPU, THROUGHPUT
from pgdyno.model.experiments.scaling import Confirmation, Knee, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.experiments.workload import Cell
from pgdyno.stats.curves.knee import confirm
from pgdyno.stats.curves.scaling_law import analyse, observe

_OFFSETS = {"clients": 0, "workers": 1}  # processes at level 0: the leader works, too
LEAST_LEVELS = 3  # two levels are a comparison, not a curve
LEAST_ROUNDS = 5  # as for a verdict: fewer rounds are too few to resample for 95 %


@dataclass(frozen=True)
class ScalingCurve:
    """The curve of one load at one database size; ``unit`` is the unit of levels.

    ``clients`` is the number of concurrent clients; None if the levels are clients.
    ``client_shares`` are the client's shares in the CPU time of client and server together, by level.
    ``operation`` is the unit that rates count; None: transactions.
    """

    load: str
    database_bytes: int
    unit: str
    scaling: Scaling
    confirmation: Confirmation | None
    client_shares: Mapping[int, float]
    operation: str | None = None
    clients: int | None = None


@dataclass(frozen=True)
class CurveKnee:
    """The knee of a curve, named by its load and size; ``knee`` None: too few rounds count."""

    curve: str
    unit: str
    knee: Knee | None


def scaling_curves(experiment: Experiment) -> tuple[ScalingCurve, ...]:
    """Return the curves of a grid with at least three levels, in at least five rounds.

    Empty for several variants, which are compared instead. A round is a block of each curve: it measures all
    cells, in random order.
    """
    return tuple(
        ScalingCurve(
            one.load,
            one.database_bytes,
            one.unit,
            _analysed(one.rounds, _OFFSETS[one.unit]),
            confirm(one.rounds),
            _client_shares(one.blocks, one.levels),
            one.operation,
            one.clients,
        )
        for one in measured_curves(experiment)
        if one.is_enough
    )


def knees(experiment: Experiment) -> tuple[CurveKnee, ...]:
    """Return the knees of all curves with at least three levels; quick: no scaling laws are fitted."""
    return tuple(
        CurveKnee(
            f"{one.load}, {numbers.size(one.database_bytes)}",
            one.unit,
            observe(one.rounds).knee if one.is_enough else None,
        )
        for one in measured_curves(experiment)
        if len(set(one.levels.values())) >= LEAST_LEVELS
    )


def shown_by_curves(experiment: Experiment) -> frozenset[str]:
    """Return the workloads that are levels of a sufficiently measured curve."""
    return frozenset(name for one in measured_curves(experiment) if one.is_enough for name in one.levels)


@dataclass(frozen=True)
class MeasuredCurve:
    """Measurements of one curve: blocks that count, and levels by workload."""

    load: str
    database_bytes: int
    unit: str
    operation: str | None
    clients: int | None
    levels: Mapping[str, int]
    blocks: Sequence[Block]

    @property
    def by_round(self) -> Mapping[int, Mapping[int, float]]:
        """The throughput by round and level."""
        return _rates(self.blocks, self.levels)

    @property
    def rounds(self) -> list[Mapping[int, float]]:
        """The throughput by level, for every round in order."""
        return list(self.by_round.values())

    @property
    def is_enough(self) -> bool:
        """Whether enough was measured for a curve."""
        rounds = self.rounds
        return (
            len(rounds) >= LEAST_ROUNDS
            and len({level for rates in rounds for level in rates}) >= LEAST_LEVELS
        )


def _analysed(rounds: Sequence[Mapping[int, float]], offset: int) -> Scaling:
    return _analysed_once(tuple(tuple(rates.items()) for rates in rounds), offset)


@lru_cache(maxsize=64)
def _analysed_once(rounds: tuple[tuple[tuple[int, float], ...], ...], offset: int) -> Scaling:
    """Return the fits, cached: they take seconds, and terminal, page and JSON need the same ones."""
    return analyse([dict(rates) for rates in rounds], offset=offset)


def measured_curves(experiment: Experiment) -> Iterator[MeasuredCurve]:
    """Yield the measurements of every curve; nothing for several variants."""
    places = dict.fromkeys(map(_place, experiment.cells.values()))
    for place in places if len(experiment.variants) == 1 else ():
        levels = {name: cell.level for name, cell in experiment.cells.items() if _place(cell) == place}
        blocks = [one for one in experiment.blocks if one.workload in levels and not one.void_reasons]
        yield MeasuredCurve(*place, levels, blocks)


def _place(cell: Cell) -> tuple[str, int, str, str | None, int | None]:
    """Return the properties shared by the cells of one curve."""
    clients = None if cell.unit == "clients" else cell.clients
    return cell.load, cell.database_bytes, cell.unit, cell.operation, clients


def _rates(blocks: Sequence[Block], levels: Mapping[str, int]) -> Mapping[int, Mapping[int, float]]:
    rounds: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks:
        if rate := block.arms[0].values.get(THROUGHPUT):
            rounds[block.round][levels[block.workload]].append(rate)
    return {
        round_: {level: geometric_mean(found) for level, found in rates.items()}
        for round_, rates in rounds.items()
    }


def _client_shares(blocks: Sequence[Block], levels: Mapping[str, int]) -> Mapping[int, float]:
    """Return the client's mean share by level, from blocks with both meters."""
    shares: dict[int, list[float]] = defaultdict(list)
    for block in blocks:
        values = block.arms[0].values
        client, both = values.get(CLIENT_CPU), values.get(CLIENT_CPU, 0.0) + values.get(SERVER_CPU, 0.0)
        if client is not None and SERVER_CPU in values and both > 0:
            shares[levels[block.workload]].append(client / both)
    return {level: fmean(found) for level, found in sorted(shares.items())}


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
