"""The best degree of each query as sentences and tables, for the terminal and the page. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.verdicts.scaling import LEAST_ROUNDS
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.scaling import Knee, Level
from pgdyno.model.experiments.step_record import TPCH_RUNS
from pgdyno.report.elements.tables import NOTHING, StyledCell, StyledTable, Table, columns
from pgdyno.stats.curves.knee import LEVEL, TOLERANCE
from pgdyno.studies.bundled.tpch.query_degrees import SETTING, QueryDegree, QueryDegrees, query_degrees
from pgdyno.studies.grids.findings import bounded

_TO_SET = "To set in a query's own transaction; certain all together"
_NO_WORKERS = "no workers planned"
_CAPTION = f"The smallest {SETTING} with at least {numbers.share(1 - TOLERANCE)} of the highest rate"
_INDISTINCT = "not distinguishable"


@dataclass(frozen=True)
class BestDegrees:
    """The best degrees of variants that differ only in their degree.

    ``table`` is for the page, ``narrow_table`` for the terminal; None if no degrees were compared. ``to_set``
    introduces the ``statements``, which may be empty.
    """

    title: str
    table: StyledTable | None
    narrow_table: Table | None
    sentences: tuple[str, ...]
    to_set: str
    statements: tuple[str, ...]


def best_degrees(experiment: Experiment) -> tuple[BestDegrees, ...]:
    """Return the best degrees for every combination of the other factors."""
    return tuple(map(_best_degrees, query_degrees(experiment)))


def _best_degrees(found: QueryDegrees) -> BestDegrees:
    title = "Best degree of each query" + (f", {found.common}" if found.common else "")
    is_compared = found.compared > 0
    return BestDegrees(
        title,
        _table(title, found) if is_compared else None,
        _narrow_table(found) if is_compared else None,
        tuple(_sentences(found)),
        _TO_SET,
        _statements(found),
    )


def _narrow_table(found: QueryDegrees) -> Table:
    degrees = ", ".join(map(str, found.degrees))
    rows = (
        (
            *(_name(one), _knee(one.alone, found), _knee(one.together, found)),
            NOTHING if one.name in TPCH_RUNS else ", ".join(_planned(one, d) for d in found.degrees),
        )
        for one in found.queries
    )
    return Table(_CAPTION, columns("", "by itself", "all together", f"planned at {degrees}"), tuple(rows))


def _table(title: str, found: QueryDegrees) -> StyledTable:
    caption = (
        f"{_CAPTION}. Below each degree: its rate as a share of the highest rate, with the "
        f"{numbers.share(LEVEL)} interval, and the planned workers"
    )
    heads = ("by itself", "all together", *(f"at {degree}" for degree in found.degrees))
    rows = tuple((_name(one), _cells(one, found)) for one in found.queries)
    return StyledTable(title, caption, tuple(map(StyledCell, heads)), rows, corner="Query")


def _sentences(found: QueryDegrees) -> Iterator[str]:
    """Yield the certainty of the degrees, and deviations from the plan."""
    if not found.queries:
        yield f"Too few valid rounds: at least {LEAST_ROUNDS} are needed"
        return
    if found.compared == 0:
        yield "No plan had workers, so the degree has no effect; pgdyno explain-degree shows the reasons"
        return
    level = numbers.share(LEVEL)
    yield (
        f"By itself: each bound holds with {level} confidence, regardless of other queries; one in twenty "
        f"may be wrong. All together: with {level} confidence, none of all {found.compared} is wrong "
        "(Bonferroni)"
    )
    if not _statements(found):
        yield "No query's degree is certain jointly with all others; measure more passes (--blocks, --budget)"
    yield "Queries ran alone on the machine; with other load, fewer may be best: see the throughput run"
    short = [
        f"{_name(one)} at {degree} ({numbers.share(share)})"
        for one in found.queries
        for degree, share in one.launched.items()
        if share < 1
    ]
    if short:
        yield (
            f"Fewer workers were launched than planned: {listed(short)}. These degrees were not reached; "
            "max_parallel_workers and max_worker_processes limit them"
        )


def _statements(found: QueryDegrees) -> tuple[str, ...]:
    """Return the settings for a query's own transaction: degrees that are jointly certain."""
    by_degree: dict[int, list[str]] = {}
    for one in found.queries:
        if one.set_to is not None:
            by_degree.setdefault(one.set_to, []).append(one.name)
    return tuple(
        f"SET LOCAL {SETTING} = {degree};  -- {listed(names)}" for degree, names in sorted(by_degree.items())
    )


def _knee(one: Knee | None, found: QueryDegrees) -> str:
    """Return the best degree, its bounds, or why it is unknown, in words."""
    if one is None:
        return _NO_WORKERS
    return _INDISTINCT if one.high is None and one.low == found.degrees[0] else str(one)


def _cells(one: QueryDegree, found: QueryDegrees) -> tuple[StyledCell, ...]:
    levels = {level.level: level for level in one.levels}
    return (
        StyledCell(_knee(one.alone, found)),
        StyledCell(_knee(one.together, found)),
        *(_level_cell(one, levels.get(degree), degree) for degree in found.degrees),
    )


def _level_cell(one: QueryDegree, level: Level | None, degree: int) -> StyledCell:
    if level is None:
        return StyledCell(NOTHING)
    workers = _planned(one, degree)
    planned = "" if workers == NOTHING else f"{workers} planned"
    if degree == one.fastest:
        return StyledCell("the highest", planned)
    ratio = level.ratio_to_best
    return StyledCell(numbers.share(ratio.point), ", ".join(filter(None, (bounded(ratio), planned))))


def _planned(one: QueryDegree, degree: int) -> str:
    """Return the number of planned workers; ``NOTHING`` for a run, which has many plans."""
    if degree not in one.planned or one.name in TPCH_RUNS:
        return NOTHING
    return numbers.plain(one.planned[degree])


def _name(one: QueryDegree) -> str:
    return TPCH_RUNS.get(one.name, one.name)
