"""The cost of shared tables: their scaling with clients, relative to separate tables for each client.

    symbol  meaning                                                     unit
    x_n     rate of n clients on shared tables, in one round            1/s
    y_n     the same on separate tables of each client, in that round   1/s
    r_n     (x_n / x_1) / (y_n / y_1): remaining share of the scaling   1

Separate tables share no pages, rows or locks. So r_n below 1 is the loss from contention on these, and
y_n / y_1 the scaling that machine and server allow. The rates themselves are not compared: few clients read
few separate rows, which stay in caches longer. This effect depends on n, so r_n contains some of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.measure.verdicts.scaling import LEAST_ROUNDS, MeasuredCurve, measured_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.experiments.workload import name_on_shared_tables
from pgdyno.stats.mean_amount import mean_amount


@dataclass(frozen=True)
class SharedLevel:
    """The scaling on shared tables at one number of clients, relative to that on separate tables."""

    level: int
    ratio: Interval
    rounds: int


@dataclass(frozen=True)
class SharingCost:
    """A load on shared tables compared with the same on separate tables, for two or more clients."""

    load: str
    levels: tuple[SharedLevel, ...]


def sharing_costs(experiment: Experiment) -> tuple[SharingCost, ...]:
    """Return the cost of sharing by load, for loads measured on both kinds of tables in five rounds."""
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
