"""The findings about a scaling curve, as sentences and a table. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.verdicts.scaling import ScalingCurve
from pgdyno.model.experiments.scaling import Confirmation, Law, Level, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.elements.tables import NOTHING, Table, columns

_UNTESTED = "Too few levels to test a scaling law"


def sentences(found: ScalingCurve) -> Iterator[str]:
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


def level_table(found: ScalingCurve) -> Table:
    """Return rate, ratio to the best and efficiency of every level.

    For workers also the data read per second; for clients also their share of the CPU time.
    """
    rate = f"{(found.operation or 'transactions').capitalize()}/s"
    own = ("Queries/s", "Data set/s") if found.unit == "workers" else (rate, "Client CPU")
    heads = (found.unit.capitalize(), *own, "Of the highest", "Efficiency", "Rounds")
    rows = (_row(one, found) for one in found.scaling.levels)
    return Table(f"{found.load}: every number of {found.unit}", columns(*heads, numbers_from=0), tuple(rows))


def bounded(interval: Interval) -> str:
    """Return the ends of an interval of shares, or "no interval" if it is unbounded."""
    if not math.isfinite(interval.high):
        return "no interval"
    return f"{numbers.share(interval.low)}{numbers.SPACE}…{numbers.SPACE}{numbers.share(interval.high)}"


def _row(one: Level, found: ScalingCurve) -> tuple[str, ...]:
    of_best = "the highest" if one.level == found.scaling.best else _share(one.ratio_to_best)
    efficiency = NOTHING if one.efficiency is None else numbers.share(one.efficiency.point)
    own = _data_rate(one, found) if found.unit == "workers" else _client_share(one, found)
    return (str(one.level), numbers.number(one.rate), own, of_best, efficiency, str(one.blocks))


def _data_rate(one: Level, found: ScalingCurve) -> str:
    return f"{numbers.size(one.rate * found.database_bytes)}/s"


def _client_share(one: Level, found: ScalingCurve) -> str:
    share = found.client_shares.get(one.level)
    return NOTHING if share is None else numbers.share(share)


def _confirmed(found: Confirmation, unit: str, tolerance: float) -> str:
    """Return whether rounds that were not used for the choice confirm the recommended level."""
    counted = f"{found.level} {unit.removesuffix('s') if found.level == 1 else unit}"
    rounds = f"{found.rounds} rounds not used for the choice"
    if found.is_confirmed:
        low = numbers.share(found.ratio.low)
        return f"Recommended: {counted}, confirmed in {rounds}: at least {low} of any other level's rate"
    short = f"{_share(found.ratio)} of the rate at {found.against}"
    return f"{counted} seemed sufficient, but {rounds} do not confirm {numbers.share(1 - tolerance)}: {short}"


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
    return f"{_name(law)} fits from {min(levels)} to {max(levels)} {unit}: {', '.join(_terms(law))}"


def _name(law: Law) -> str:
    return "Amdahl's law" if law.name == "Amdahl" else "The universal scalability law"


def _terms(law: Law) -> Iterator[str]:
    yield f"contention {numbers.share(law.contention.point)} ({bounded(law.contention)})"
    if law.crosstalk is not None:
        ends = f"{law.crosstalk.low:.2g}{numbers.SPACE}…{numbers.SPACE}{law.crosstalk.high:.2g}"
        yield f"crosstalk {law.crosstalk.point:.2g} ({ends})"
    if law.peak is not None:
        yield f"peak at {law.peak:.1f}"
