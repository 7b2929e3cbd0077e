"""Findings of a grid: curves, the workers to set, the cost of sharing, the parts of a transaction. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.base.text import listed, sentence
from pgdyno.measure.verdicts.scaling import (
    BUILDS,
    QUERIES,
    AtOnce,
    DegreeSetting,
    ScalingCurve,
    degree_settings,
)
from pgdyno.measure.verdicts.transaction_split import SharingCost, TransactionSplit
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Confirmation, Law, Level, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.experiments.workload import C_LOOP, CLIENT, PLPGSQL_LOOP
from pgdyno.report.elements.tables import NOTHING, Section, Table, columns
from pgdyno.stats.nested import Amount
from pgdyno.studies.grids.grid_tables import counted

_UNTESTED = "Too few levels to test a scaling law"
_UNIT = "workers"
_WHERE = (
    "Each is for its own query. SET is for a session, ALTER ROLE … SET and ALTER DATABASE … SET for all "
    "sessions of the role or database, ALTER TABLE … SET (parallel_workers = N) for all queries of a table "
    "and builds of its indexes"
)
_LIMITS = {
    QUERIES: f"{QUERIES} is an upper limit: pgdyno explain-degree --workers N shows the other limits",
    BUILDS: (
        f"{BUILDS} is an upper limit: without the table's option parallel_workers, a build gets only as many "
        "workers as leave each process, including the leader, 32 MB of maintenance_work_mem"
    ),
}
_ALL = numbers.share(1)


SHARING = (
    "Scaling is the rate as a multiple of one client's rate; kept is the scaling on shared tables relative "
    f"to that on own tables. At {_ALL} sharing costs nothing. Among many intervals some miss by chance"
)


def scaling(found: ScalingCurve, title: str) -> Section:
    """Return the knee and the scaling law of a curve, and its levels."""
    return Section(title, tuple(_sentences_on(found)), _levels(found))


def _sentences_on(found: ScalingCurve) -> Iterator[str]:
    """Yield the findings, the knee first."""
    scaling, unit = found.scaling, found.unit
    knee = scaling.knee
    share = numbers.share(1 - knee.tolerance)
    knees = unit.removesuffix("s") if str(knee) == "1" else unit
    yield f"Knee: {knee} {knees}, the smallest measured number with at least {share} of the highest rate"
    if found.confirmation is not None:
        yield _confirmed(found.confirmation, unit, knee.tolerance)
    worse = scaling.worse_from
    beyond = f"significantly worse from {worse} on" if worse else "no higher number was proven to be worse"
    yield f"Highest at {scaling.best}; {beyond}"
    for dip in scaling.dips:
        around = f"than at {dip.before} and at {dip.after}"
        yield f"More than one peak: lower at {dip.at} {around}, so no scaling law fits"
    if scaling.is_unimodal:
        yield _of_laws(scaling, unit)


def _levels(found: ScalingCurve) -> Table:
    """Return rate, ratio to the best and efficiency of every level.

    For workers also the data read per second; for clients also their share of the CPU time.
    """
    rate = f"{(found.operation or 'transactions').capitalize()}/s"
    own = ("Queries/s", "Data set/s") if found.unit == "workers" else (rate, "Client CPU")
    heads = (found.unit.capitalize(), *own, "Of the highest", "Efficiency", "Rounds")
    rows = (_level(one, found) for one in found.scaling.levels)
    return Table(f"{found.load}: every number of {found.unit}", columns(*heads, numbers_from=0), tuple(rows))


def bounded(interval: Interval) -> str:
    """Return the ends of an interval of shares, or "no interval" if it is unbounded."""
    if not math.isfinite(interval.high):
        return "no interval"
    return f"{numbers.share(interval.low)}{numbers.SPACE}…{numbers.SPACE}{numbers.share(interval.high)}"


def _level(one: Level, found: ScalingCurve) -> tuple[str, ...]:
    of_best = "the highest" if one.level == found.scaling.best else _share(one.ratio_to_best)
    efficiency = NOTHING if one.efficiency is None else numbers.share(one.efficiency.point)
    client = found.client_shares.get(one.level)
    own = NOTHING if client is None else numbers.share(client)
    if found.unit == "workers":
        own = f"{numbers.size(one.rate * found.database_bytes)}/s"
    return (str(one.level), numbers.number(one.rate), own, of_best, efficiency, str(one.blocks))


def _confirmed(found: Confirmation, unit: str, tolerance: float) -> str:
    """Return whether rounds that were not used for the choice confirm the recommended level."""
    level = counted(found.level, unit)
    rounds = f"{found.rounds} rounds not used for the choice"
    if found.is_confirmed:
        low = numbers.share(found.ratio.low)
        return f"Recommended: {level}, confirmed in {rounds}: at least {low} of any other level's rate"
    short = f"{_share(found.ratio)} of the rate at {found.against}"
    return f"{level} seemed sufficient, but {rounds} do not confirm {numbers.share(1 - tolerance)}: {short}"


def _share(ratio: Interval) -> str:
    return f"{numbers.share(ratio.point)} ({bounded(ratio)})"


def _of_laws(scaling: Scaling, unit: str) -> str:
    if not scaling.laws:
        return _UNTESTED
    law = next((one for one in scaling.laws if one.name == scaling.law), None)
    if law is None:
        tested = [one.name for one in scaling.laws if one.p_value is not None]
        return f"No scaling law fits ({listed(tested)} tested)" if tested else _UNTESTED
    levels = [one.level for one in scaling.levels]
    name = "Amdahl's law" if law.name == "Amdahl" else "The universal scalability law"
    return f"{name} fits from {min(levels)} to {max(levels)} {unit}: {', '.join(_terms(law))}"


def _terms(law: Law) -> Iterator[str]:
    yield f"contention {numbers.share(law.contention.point)} ({bounded(law.contention)})"
    if law.crosstalk is not None:
        ends = f"{law.crosstalk.low:.2g}{numbers.SPACE}…{numbers.SPACE}{law.crosstalk.high:.2g}"
        yield f"crosstalk {law.crosstalk.point:.2g} ({ends})"
    if law.peak is not None:
        yield f"peak at {law.peak:.1f}"


def what_to_set(experiment: Experiment) -> Section | None:
    """Return the settings for each query; None if the number of workers was not varied."""
    found = degree_settings(experiment)
    if not found:
        return None
    certain = [one for one in found if one.workers is not None]
    limits = tuple(_LIMITS[setting] for setting in dict.fromkeys(one.setting for one in certain))
    where = (_WHERE, *limits) if certain else ()
    sentences = (*map(_degree, found), *where)
    return Section("What to set", sentences, statements=tuple(map(_statement, certain)))


def _statement(one: DegreeSetting) -> str:
    settings = {one.setting: one.workers, **dict.fromkeys(one.also, "on")}
    return f"{' '.join(f'SET {name} = {value};' for name, value in settings.items())}  -- {one.load}"


def _degree(one: DegreeSetting) -> str:
    if one.workers is None:
        return f"{one.load}: the best number is not certain yet ({one.knee}); --budget for more rounds"
    rate = f"at least {numbers.share(1 - one.knee.tolerance)} of any other number's rate"
    how = "confirmed by fresh rounds" if one.is_confirmed else "from all rounds"
    alone = f"{one.load} by itself: {counted(one.workers, _UNIT)}, {rate} ({how})"
    return "; ".join((alone, *_costs(one)))


def _costs(one: DegreeSetting) -> Iterator[str]:
    """Yield the effects of that number on concurrent clients."""
    for other in one.at_once:
        yield f"{other.load.removeprefix(f'{one.load}, ')}: {_cost(other)}"


def _cost(other: AtOnce) -> str:
    if not other.is_measured:
        return f"not measured with this number; best with {counted(other.best, _UNIT)}"
    if other.ratio is None:
        return "the best for them too"
    best = f"their highest, with {counted(other.best, _UNIT)}"
    return f"{numbers.share(other.ratio.point)} ({bounded(other.ratio)}) of {best}"


def sharing(found: SharingCost) -> Section:
    """Return the scaling kept on shared tables by number of clients."""
    level = numbers.share(found.levels[0].ratio.level)
    table = Table(
        f"{found.load}: the cost of sharing tables",
        columns("Clients", "Scaling kept", f"{level} interval", "Rounds", numbers_from=0),
        tuple(
            (str(one.level), numbers.share(one.ratio.point), bounded(one.ratio), str(one.rounds))
            for one in found.levels
        ),
    )
    return Section(table.caption, tuple(_sharing(found)), table)


def _sharing(found: SharingCost) -> Iterator[str]:
    less = [str(one.level) for one in found.levels if one.ratio.high < 1]
    more = [str(one.level) for one in found.levels if one.ratio.low > 1]
    if less:
        yield f"Sharing has a cost at {listed(less)} clients: the interval is below {_ALL}"
    if more:
        yield (
            f"At {listed(more)} clients shared tables scale better than own ones, because of caches or by "
            f"chance: the interval is above {_ALL}"
        )
    if not less and not more:
        yield f"No cost of sharing was shown or excluded: every interval includes {_ALL}"


def split_time(split: TransactionSplit) -> Section:
    """Return every part with its interval and share of the transaction, their sum, and PL/pgSQL's part."""
    level = numbers.share(split.whole_us.level)
    rows = (
        *((part.name, *_time(part.time_us), numbers.share(part.share)) for part in split.parts),
        ("a client-driven transaction", *_time(split.whole_us), numbers.share(1.0)),
        (split.plpgsql.name, *_time(split.plpgsql.time_us), NOTHING),
    )
    table = Table(
        f"Parts of a transaction's time{_words(split)}, {split.variant} at one client: {split.rounds} rounds",
        columns("Part", "Time in µs", f"{level} interval", "Share", numbers_from=1),
        rows,
    )
    return Section(table.caption, table=table, notes=tuple(_remarks(split)))


def _remarks(split: TransactionSplit) -> Iterator[str]:
    """Yield the throughput of one CPU, the cost of a loop, and indistinguishable parts."""
    rates = {load: _bounded(rate) for load, rate in split.per_cpu_s.items()}
    yield (
        f"In the server{_words(split)}, per second of CPU time: "
        f"{rates[C_LOOP]} executions in a loop in C, {rates[PLPGSQL_LOOP]} in PL/pgSQL; "
        f"{rates[CLIENT]} client-driven transactions, without the client's CPU time"
    )
    yield f"An empty loop takes {_bounded(split.loop_ns)} ns per iteration"
    for part in (*split.parts, split.plpgsql):
        if not part.is_distinguishable:
            yield f"{sentence(part.name)}: not distinguishable from zero"


def _words(split: TransactionSplit) -> str:
    return f", {split.words}" if split.words else ""


def _time(time_us: Amount) -> tuple[str, str]:
    return numbers.number(time_us.mean), _ends(time_us)


def _bounded(amount: Amount) -> str:
    return f"{numbers.number(amount.mean)} ({_ends(amount)})"


def _ends(amount: Amount) -> str:
    return f"{numbers.number(amount.low)}{numbers.SPACE}…{numbers.SPACE}{numbers.number(amount.high)}"
