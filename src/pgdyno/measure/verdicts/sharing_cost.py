"""The cost of shared tables: how they scale with clients, relative to tables of each client's own.

    symbol  meaning                                                     unit
    x_n     rate of n clients on shared tables, in one round            1/s
    y_n     the same on tables of each client's own, in that round      1/s
    r_n     (x_n / x_1) / (y_n / y_1): scaling that is left with them   1

Own tables share no pages, rows or locks: an r_n below 1 is what clients lose to each other by these, and
y_n / y_1 the scaling that machine and server allow. The rates themselves are not compared: few clients read
few of the own rows, which caches hold longer. How much longer depends on n, so that r_n has a part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.measure.verdicts.scaling import LEAST_ROUNDS, MeasuredCurve, measured_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.experiments.workload import name_on_shared_tables
from pgdyno.stats.amount import mean_amount


@dataclass(frozen=True)
class SharedLevel:
    """The scaling left with shared tables at one number of clients, as a share of that with own ones."""

    level: int
    ratio: Interval
    rounds: int


@dataclass(frozen=True)
class SharingCost:
    """A load on shared tables against the same on own ones, from two clients on."""

    load: str
    levels: tuple[SharedLevel, ...]


def sharing_costs(experiment: Experiment) -> tuple[SharingCost, ...]:
    """Return the cost of sharing by load; none where it was not measured on both, in five rounds."""
    curves = {curve.load: curve for curve in measured_curves(experiment)}
    level = experiment.design.level
    found = (
        SharingCost(load, tuple(_levels(curves[load], own, level)))
        for own in curves.values()
        if (load := name_on_shared_tables(own.load)) in curves
    )
    return tuple(one for one in found if one.levels)


def _levels(shared: MeasuredCurve, own: MeasuredCurve, level: float) -> Iterator[SharedLevel]:
    alone = own.by_round
    both = [(rates, alone[number]) for number, rates in shared.by_round.items() if number in alone]
    for clients in sorted({*shared.levels.values()} - {1}):
        ratios = _log_ratios(both, clients)
        if len(ratios) >= LEAST_ROUNDS:
            found = mean_amount(ratios, level)
            low, mean, high = map(math.exp, (found.low, found.mean, found.high))
            yield SharedLevel(clients, Interval(low, mean, high, level), len(ratios))


def _log_ratios(both: Sequence[tuple[Mapping[int, float], Mapping[int, float]]], clients: int) -> list[float]:
    """Return ln r_n of every round that has all four rates."""
    needed = {1, clients}
    return [
        math.log(shared[clients] / shared[1]) - math.log(own[clients] / own[1])
        for shared, own in both
        if needed <= shared.keys() and needed <= own.keys()
    ]
