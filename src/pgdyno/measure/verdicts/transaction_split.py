"""The parts of a client-driven transaction's time, from loads that each leave out one more part.

    symbol  measured at one client, means of a round                                            unit
    T       time between transactions: 1 / throughput, issued by the client                     µs
    S       CPU time of the server per transaction, issued by the client                        µs
    C       CPU time of the server per execution in the loop in C                               µs
    P       the same in the loop in PL/pgSQL                                                    µs
    E       the same in the loop in C without a query: the loop itself                          µs
    Q       the same of one query that reads all rows: its executor starts and ends once        µs

    part                    formula        contents
    network + client        T − S          the client's work, the kernel's network path, wake-ups; not the
                                           server's system calls, which are in its CPU time
    protocol + transaction  S − (C − E)    messages, portal, begin and end of the transaction, the server's
                                           system calls; no parsing and planning: the statement is prepared
    executor start and end  C − E − Q      looking up the cached plan, a snapshot, creating and destroying
                                           the executor state
    the query itself        Q              searching the index, reading one row
    PL/pgSQL, beside that   P − (C − E)    interpreting the loop and its variables; not part of T

The first four add up to T. Each is the mean over rounds of a difference within a round, so disturbances of a
round affect both sides. A server with an active client has warmer or colder caches than one that loops. The
difference contains this effect, which is indistinguishable from it.

The cost of shared tables: their scaling with clients, relative to separate tables for each client.

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
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pgdyno.measure.verdicts.scaling import LEAST_ROUNDS, MeasuredCurve, measured_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import SERVER_CPU, THROUGHPUT
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.experiments.workload import (
    BESIDE,
    C_LOOP,
    CLIENT,
    CURVES,
    EMPTY_LOOP,
    ONE_QUERY,
    PLPGSQL_LOOP,
    issuer_and_words,
    name_on_shared_tables,
)
from pgdyno.stats.nested import Amount, mean_amount

_LOADS = (*CURVES, *BESIDE)


@dataclass(frozen=True)
class TimePart:
    """A part of a transaction's time, in µs; ``share`` is its share of the whole transaction.

    Unless ``is_distinguishable``, its interval contains 0.
    """

    name: str
    time_us: Amount
    share: float
    is_distinguishable: bool


@dataclass(frozen=True)
class TransactionSplit:
    """The time of one client's transaction on a variant's server: ``parts`` add up to it.

    ``words`` describe its statement and tables; empty: the usual ones.
    ``plpgsql`` is not one of the parts: the time of an execution in a PL/pgSQL loop in addition to the query.
    ``per_cpu_s`` is the number of executions per second of CPU time, by load; ``loop_ns`` is the time of one
    iteration of the loop in C without a query.
    """

    variant: str
    rounds: int
    whole_us: Amount
    parts: tuple[TimePart, ...]
    plpgsql: TimePart
    per_cpu_s: Mapping[str, Amount]
    loop_ns: Amount
    words: str = ""


@dataclass(frozen=True)
class _Round:
    """T and the server CPU times by load of one round, in µs."""

    t: float
    cpu: Mapping[str, float]

    @property
    def times(self) -> dict[str, float]:
        """Return the time of every part, and of PL/pgSQL last, in µs."""
        in_c = self.cpu[C_LOOP] - self.cpu[EMPTY_LOOP]
        return {
            "network + client": self.t - self.cpu[CLIENT],
            "protocol + transaction": self.cpu[CLIENT] - in_c,
            "executor start and end": in_c - self.cpu[ONE_QUERY],
            "the query itself": self.cpu[ONE_QUERY],
            "PL/pgSQL, beside that": self.cpu[PLPGSQL_LOOP] - in_c,
        }


def transaction_splits(experiment: Experiment) -> tuple[TransactionSplit, ...]:
    """Return a split per variant, statement and tables with all loads measured in at least five rounds."""
    issued = (issuer_and_words(cell.load) for cell in experiment.cells.values())
    found = (
        (variant.name, words, _rounds(experiment, variant.name, words))
        for words in dict.fromkeys(words for issuer, words in issued if issuer == CLIENT)
        for variant in experiment.variants
    )
    level = experiment.design.level
    return tuple(
        _split(name, words, rounds, level) for name, words, rounds in found if len(rounds) >= LEAST_ROUNDS
    )


def shown_by_splits(experiment: Experiment) -> frozenset[str]:
    """Return the workloads that are measured only for the splits."""
    split = {one.words for one in transaction_splits(experiment)}
    issued = {name: issuer_and_words(cell.load) for name, cell in experiment.cells.items()}
    return frozenset(name for name, (issuer, words) in issued.items() if issuer in BESIDE and words in split)


def _split(variant: str, words: str, rounds: Sequence[_Round], level: float) -> TransactionSplit:
    whole = mean_amount([one.t for one in rounds], level)

    def part(name: str) -> TimePart:
        time = mean_amount([one.times[name] for one in rounds], level)
        return TimePart(name, time, time.mean / whole.mean, time.is_distinguishable)

    *parts, plpgsql = map(part, rounds[0].times)
    return TransactionSplit(
        variant,
        len(rounds),
        whole,
        tuple(parts),
        plpgsql,
        {load: mean_amount([1e6 / one.cpu[load] for one in rounds], level) for load in CURVES},
        mean_amount([1e3 * one.cpu[EMPTY_LOOP] for one in rounds], level),
        words,
    )


def _rounds(experiment: Experiment, variant: str, words: str) -> list[_Round]:
    """Return the rounds in which all loads with these words were measured with one client, and count."""
    alone = {name: issuer_and_words(cell.load) for name, cell in experiment.cells.items() if cell.level == 1}
    loads = {name: issuer for name, (issuer, own) in alone.items() if own == words}
    values: dict[int, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in experiment.blocks:
        if block.workload not in loads or block.void_for(variant):
            continue
        for arm in (one for one in block.arms if one.variant == variant):
            for metric in (THROUGHPUT, SERVER_CPU):
                if (value := arm.values.get(metric)) is not None and value > 0:
                    values[block.round][loads[block.workload], metric].append(value)
    needed = {(CLIENT, THROUGHPUT), *((load, SERVER_CPU) for load in _LOADS)}
    return [
        _Round(
            1e6 / fmean(found[CLIENT, THROUGHPUT]), {load: fmean(found[load, SERVER_CPU]) for load in _LOADS}
        )
        for found in values.values()
        if needed <= found.keys()
    ]


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
