"""The worth of each part of a plan, and experiments of several parts, in words and tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.verdicts.part_worths import (
    Attribution,
    PartEffect,
    attributed_parts,
    attributions,
    whole_name,
)
from pgdyno.measure.view.wording import verdict_cells
from pgdyno.model.experiments.experiment import DesignKind, Experiment, Part
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Interval, Verdict
from pgdyno.model.plans.plan import PLAN
from pgdyno.report.charts.svg import Caption
from pgdyno.report.charts.waterfall import Fall, Step, waterfall
from pgdyno.report.elements.tables import NOTHING, Figure, Table, columns, figure

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
_KINDS = {DesignKind.DUET: "duet", DesignKind.ALTERNATING: "whole trials"}
_IN_ALL = "in all"


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
        details = ""
        if row.alone is not None and row.left_out is not None:
            details = f"alone {change(row.alone)}, in the whole {change(row.left_out)}"
        yield ", ".join(filter(None, (line, details, row.remark)))


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
        columns(
            *("Workload", "Part", "Worth", f"{level} interval", "Alone", "In the whole", ""),
            numbers_from=2,
            words_from=6,
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
    return figure(partial(waterfall, caption, falls), table, title="The worth of each part")


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


def parts_table(experiment: Experiment) -> Table:
    """Return the effect of each step, and of all together, as a table."""
    rows = tuple(
        (step, workload, *verdict_cells(verdict), how) for step, workload, verdict, how in _rows(experiment)
    )
    level = numbers.share(experiment.design.level)
    return Table(
        "Throughput of each step against the one before, and of all of them together",
        columns("Step", "Workload", "Effect", f"{level} interval", "Verdict", "Measured in"),
        rows,
        totals=len(experiment.workloads),
    )


def parts_design(experiment: Experiment) -> Table:
    """Return the parts with their designs."""
    rows = tuple(
        (part.experiment, _variants(part), _KINDS[part.kind], str(part.rounds)) for part in experiment.parts
    )
    caption = "The parts; their own reports have their designs (pgdyno report ID)"
    return Table(caption, columns("Experiment", "Variants", "Design", "Rounds", numbers_from=3), rows)


def parts_sentences(experiment: Experiment) -> str:
    """Return an explanation of the product of the parts' effects and its interval."""
    level = numbers.share(experiment.design.level)
    designs = listed([f"{_variants(part)} in {_KINDS[part.kind]}" for part in experiment.parts])
    return (
        "Not all variants can take turns, because they differ in settings that are machine-wide. "
        "So they were measured in parts, each with the machine set as its variants need: "
        f"{designs}. The effect in all is the product of the parts' ratios: their log-ratios are added. The "
        "parts ran on different servers and at different times, so their errors are independent and their "
        f"variances add. The {level} interval is a t interval with that sum, degrees of freedom by Welch "
        "and Satterthwaite; the noisiest part dominates its width. It assumes that the effect of a step is "
        "the same with other servers running as alone."
    )


def _rows(experiment: Experiment) -> Iterator[tuple[str, str, Verdict, str]]:
    """Yield each step on each workload, then all together: name, workload, verdict, design."""
    for part in experiment.parts:
        for name in part.variants[1:]:
            for verdict in _throughput(part.verdicts, name):
                yield name, verdict.workload, verdict, _KINDS[part.kind]
    for verdict in _throughput(experiment.verdicts, experiment.parts[-1].variants[-1]):
        yield _IN_ALL, verdict.workload, verdict, f"product of {len(experiment.parts)} parts"


def _throughput(verdicts: tuple[Verdict, ...], variant: str) -> list[Verdict]:
    return [one for one in verdicts if one.metric == THROUGHPUT and one.variant == variant]


def _variants(part: Part) -> str:
    return " → ".join(part.variants)
