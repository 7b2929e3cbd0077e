"""The worth of each part of a plan, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.verdicts.part_worths import (
    Attribution,
    PartEffect,
    attributed_parts,
    attributions,
    whole_name,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.terms import PLAN
from pgdyno.report.charts.svg import Caption
from pgdyno.report.charts.waterfall import Fall, Step, waterfall
from pgdyno.report.elements.tables import NOTHING, Column, Figure, Table, figure

NEED_NOT_ADD_UP = (
    "The parts were only left out, not measured alone. Their effects need not add up to that of the whole: a "
    "gain that either of two parts gives is lost only if both are left out, and a gain that needs both is "
    "lost if either is. The remainder is the difference."
)
ADD_UP = (
    "A part's worth is the mean of its effect alone and of the loss of the whole without it, so a gain that "
    "needs two parts is divided between them. There is a remainder only if three or more parts depend on one "
    "another."
)
_NOTHING = "may be nothing"


@dataclass(frozen=True)
class AttributionRow:
    """A row of the table: a part, several parts together, the remainder, or the whole.

    ``alone`` and ``left_out`` None: only the effect is known.
    """

    label: str
    effect: Interval
    remark: str
    alone: Interval | None = None
    left_out: Interval | None = None
    is_sum: bool = False  # the whole
    is_rest: bool = False  # the remainder


def attribution_text(experiment: Experiment) -> str:
    """Return a line for each part and workload; empty if the plan was not split into parts."""
    if not attributed_parts(experiment):
        return ""
    found = attributions(experiment)
    if not found:
        return (
            "The worth of each part is unknown: all servers count in too few rounds, or more transactions "
            "fail on one of them.\n"
        )
    lines = [line for one in found for line in _lines(one, rows_of(one, whole_name(experiment)))]
    return "\n".join(["The worth of each part, in throughput:", *lines, how_to_add(found)]) + "\n"


def how_to_add(found: tuple[Attribution, ...]) -> str:
    """Return an explanation of whether the parts add up to the whole."""
    return ADD_UP if all(part.alone is not None for one in found for part in one.parts) else NEED_NOT_ADD_UP


def rows_of(attribution: Attribution, whole: str) -> tuple[AttributionRow, ...]:
    """Return the rows of one workload: the separate parts, the others together, remainder and whole."""
    rows = [_part_row(one) for one in attribution.separate]
    if attribution.together is not None:
        names = ", ".join(one.name for one in attribution.small)
        rows.append(AttributionRow(f"{names} together", attribution.together, remark(attribution.together)))
    is_whole_known = all(one.alone is not None for one in attribution.parts)
    of_remainder = _of_remainder if is_whole_known else _of_overlap
    return (
        *rows,
        AttributionRow("remainder", attribution.remainder, of_remainder(attribution.remainder), is_rest=True),
        AttributionRow(
            "whole plan" if whole == PLAN else "whole answer",
            attribution.whole,
            remark(attribution.whole),
            is_sum=True,
        ),
    )


def remark(interval: Interval) -> str:
    """Return a remark on an interval; empty if it shows a gain."""
    if interval.high < 1:
        return "costs"
    return _NOTHING if interval.low <= 1 else ""


def _part_row(part: PartEffect) -> AttributionRow:
    remarks = [remark(part.worth), _of_interaction(part.interaction)]
    return AttributionRow(part.name, part.worth, ", ".join(filter(None, remarks)), part.alone, part.left_out)


def _of_interaction(interval: Interval | None) -> str:
    if interval is None or interval.low <= 1 <= interval.high:
        return ""
    return f"{'more' if interval.low > 1 else 'less'} with the others than alone"


def _of_remainder(interval: Interval) -> str:
    if interval.low <= 1 <= interval.high:
        return "may be nothing: the parts add up"
    return "three or more parts depend on one another"


def _of_overlap(interval: Interval) -> str:
    if interval.low > 1:
        return "gained by any of several parts"
    return "counted in more than one part" if interval.high < 1 else _NOTHING


def _lines(attribution: Attribution, rows: tuple[AttributionRow, ...]) -> Iterator[str]:
    width = max(len(row.label) for row in rows)
    for place, row in enumerate(rows):
        workload = attribution.workload if place == 0 else ""
        line = f"  {workload:22}  {row.label:{width}}  {change(row.effect)} ({numbers.interval(row.effect)})"
        yield ", ".join(filter(None, (line, _details(row), row.remark)))


def _details(row: AttributionRow) -> str:
    if row.alone is None or row.left_out is None:
        return ""
    return f"alone {change(row.alone)}, in the whole {change(row.left_out)}"


def change(interval: Interval) -> str:
    """Return an interval's point as a change in percent."""
    return numbers.change_within(interval.point, interval.low, interval.high)


def attribution_figure(experiment: Experiment) -> Figure | None:
    """Return the waterfall of every workload; None without parts, or if too few rounds count."""
    found = {one.workload: rows_of(one, whole_name(experiment)) for one in attributions(experiment)}
    if not found:
        return None
    level = numbers.share(experiment.design.level)
    table = Table(
        "The worth of each part: changes of throughput",
        (
            Column("Workload"),
            Column("Part"),
            Column("Worth", is_number=True),
            Column(f"{level} interval", is_number=True),
            Column("Alone", is_number=True),
            Column("In the whole", is_number=True),
            Column(""),
        ),
        tuple(_cells(workload, row) for workload, rows in found.items() for row in rows),
    )
    caption = Caption(
        "attribution",
        "From the baseline to the whole, part by part",
        "; ".join(
            f"{workload}, {row.label}: {change(row.effect)} ({numbers.interval(row.effect)})"
            for workload, rows in found.items()
            for row in rows
        ),
    )
    falls = [Fall(workload, tuple(_steps(rows))) for workload, rows in found.items()]

    def draw(width: float) -> Markup:
        return waterfall(caption, falls, width=width)

    return figure(draw, table, title="The worth of each part")


def _cells(workload: str, row: AttributionRow) -> tuple[str, ...]:
    apart = (NOTHING if one is None else change(one) for one in (row.alone, row.left_out))
    return (workload, row.label, change(row.effect), numbers.interval(row.effect), *apart, row.remark)


def _steps(rows: Sequence[AttributionRow]) -> Iterator[Step]:
    reached = 1.0
    for row in rows:
        yield Step(row.label, row.remark, 1.0 if row.is_sum else reached, row.effect, _style(row))
        reached *= row.effect.point


def _style(row: AttributionRow) -> str:
    if row.is_sum:
        return "whole"
    if row.is_rest:
        return "equivalent"
    return "better" if row.effect.point >= 1 else "worse"
