"""The TPC-H-like workload's part of pages, terminal output and JSON documents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from pgdyno.base.facts import Json, to_document
from pgdyno.measure.view.series import variants_of
from pgdyno.measure.view.wording import legend
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.step_record import DISCLAIMER
from pgdyno.model.experiments.verdict import Decision
from pgdyno.postgres.plan_document import shape
from pgdyno.report.elements.tables import Section, StyledCell, columns
from pgdyno.report.elements.terminal import ENDLESS, decided_text, plain_text, rich_table, section_parts
from pgdyno.studies.bundled.tpch.degree_table import best_degrees
from pgdyno.studies.bundled.tpch.query_degrees import query_degrees
from pgdyno.studies.bundled.tpch.tables import (
    Relative,
    lines,
    plan_comparisons,
    run_table,
    sentence_on,
    time_table,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

NAME = "tpch"
_UNITS = {"power run": "executions/h", "throughput run": "queries/h"}
_WIDTH_OF_NAMES = 30  # characters of all names together, at most: otherwise letters replace them


def page(experiment: Experiment) -> Mapping[str, object]:
    """Return the template values of the TPC-H part; None for other workloads."""
    facts = experiment.tpch
    if facts is None:
        return {"tpch": None}
    plans = facts.plans.get(experiment.baseline, {})
    return {
        "tpch": {
            "disclaimer": sentence_on(facts),
            "tables": (run_table(experiment, facts), time_table(experiment)),
            "degrees": best_degrees(experiment),
            "differences": plan_comparisons(experiment),
            "plans": [(query, "\n".join(shape(plan))) for query, plan in plans.items()],
        }
    }


def by_workload(_: Experiment) -> Mapping[str, object]:
    """Return an empty mapping: the page has no parts per query."""
    return {}


def document(experiment: Experiment) -> Json:
    """Return times, runs, best degrees and differing plans; null for other workloads.

    Times are in seconds, runs in executions per hour. A ratio of times below 1 means faster.
    """
    if experiment.tpch is None:
        return None
    variants = variants_of(experiment)
    return to_document(
        {
            "disclaimer": DISCLAIMER,
            "scale": experiment.tpch.scale,
            "streams": experiment.tpch.streams,
            "executions": [
                {
                    "name": line.name,
                    "unit": "s" if line.is_time else "per hour",
                    "figures": dict(zip(variants, line.figures, strict=True)),
                    "relative": [_relative_document(one) for one in line.relative],
                }
                for line in lines(experiment)
            ],
            "best_degrees": query_degrees(experiment),
            "plan_differences": plan_comparisons(experiment),
        }
    )


def _relative_document(one: Relative) -> dict[str, object]:
    return {
        "variant": one.variant,
        "ratio": one.ratio,
        "interval": None if one.interval is None else [one.interval.low, one.interval.high],
        "verdict": None if one.verdict is None else one.verdict.decision,
    }


def tables(experiment: Experiment) -> Iterator[RenderableType]:
    """Yield the times, both runs, and the differences of plans; nothing for other workloads."""
    if experiment.tpch is None:
        return
    yield plain_text(sentence_on(experiment.tpch), "bold")
    is_compared, names = len(experiment.variants) > 1, _labels(experiment)
    yield from (plain_text(f"{label}: {name}") for name, label in names.items() if label != name)
    relative = f"; relative to {names[experiment.baseline]} = 1, ± half of the interval's width" * is_compared
    yield plain_text(f"\nTimes, geometric mean over the rounds{relative}", "bold")
    yield _Tables([*names.values()], time_table(experiment).rows)
    yield plain_text("\nBoth runs, per hour: higher is better", "bold")
    runs = run_table(experiment, experiment.tpch).rows
    yield _Tables([*names.values()], tuple((f"{name} ({_UNITS[name]})", cells) for name, cells in runs))
    if is_compared:
        yield plain_text(legend(experiment.design.equivalence_margin), "dim")
        yield from _degrees(experiment)
        yield from _plans(experiment)


def _labels(experiment: Experiment) -> dict[str, str]:
    """Return the variants' column titles by name: the name, or a letter if the names are too long."""
    names = variants_of(experiment)
    is_short = sum(map(len, names)) <= _WIDTH_OF_NAMES
    letters = (*ascii_uppercase, *map(str, range(27, len(names) + 1)))
    return dict(zip(names, names if is_short else letters, strict=False))


def _plans(experiment: Experiment) -> Iterator[Text]:
    if not (experiment.tpch and experiment.tpch.plans):  # interrupted before plans were recorded
        return
    differing = plan_comparisons(experiment)
    yield plain_text("\nPlans", "bold")
    if not differing:
        yield plain_text("all variants have the same plans")
    names = _labels(experiment)
    for one in differing:
        yield plain_text(f"{one.query}, {names[one.variant]}: {', '.join(one.kinds)}")
    if differing:
        yield plain_text("the report has them line by line", "dim")


def _degrees(experiment: Experiment) -> Iterator[RenderableType]:
    for found in best_degrees(experiment):
        table = found.narrow_table
        statements = (
            (f"{found.to_set}:", *(f"  {one}" for one in found.statements)) if found.statements else ()
        )
        captions = () if table is None else (table.caption,)
        yield from section_parts(Section(found.title, captions, table, found.sentences, statements))


@dataclass(frozen=True)
class _Tables:
    """Lines as a table; if not all variants fit side by side, as several tables, each with the baseline."""

    names: Sequence[str]
    rows: Sequence[tuple[str, Sequence[StyledCell]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the smallest number of tables that fit the width."""
        others = range(1, len(self.names))
        endless = options.update(max_width=ENDLESS)
        for count in range(len(others), 0, -1):
            tables = [self._table(others[at : at + count]) for at in range(0, len(others), count)]
            if max(console.measure(one, options=endless).maximum for one in tables) <= options.max_width:
                break
        else:  # a single variant, or a terminal too narrow for two
            tables = [self._table([one]) for one in others] or [self._table([])]
        for place, table in enumerate(tables):
            yield from ("", table) if place else (table,)

    def _table(self, others: Sequence[int]) -> Table:
        """Return a table of the baseline and the variants at the places ``others``, counted from 1."""
        titles = (self.names[0], *(title for place in others for title in (self.names[place], "relative")))
        heads = columns("", *titles, numbers_from=1)
        places = (0, *(place for one in others for place in (2 * one - 1, 2 * one)))
        rows = ((name, *(_cell(cells[place]) for place in places)) for name, cells in self.rows)
        return rich_table(heads, rows, unbroken=range(len(heads)))


def _cell(cell: StyledCell) -> str | Text:
    return decided_text(cell.text, Decision(cell.style), cell.narrow_note) if cell.style else cell.text
