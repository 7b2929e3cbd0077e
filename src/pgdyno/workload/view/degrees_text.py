"""A table of the parallel workers planned for a workload's statements, with notes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.parallel_degree import StatementDegree
from pgdyno.report.elements.tables import NOTHING, Column, Table


def degrees_table(workload: CapturedWorkload, found: Sequence[StatementDegree]) -> Table:
    """Return a table of the statements that may use workers, with their number and the deciding limits."""
    of = "time" if any(one.seen.time_ms for one in workload.statements) else "calls"
    columns = (
        Column("Statement"),
        Column(f"of the {of}", is_number=True),
        Column("workers", is_number=True),
        Column("decided by"),
    )
    return Table(
        f"Workers planned for statements of {workload.name}",
        columns,
        tuple(
            (one.statement, numbers.share(one.share, 1), *_decided(one)) for one in found if not one.is_never
        ),
    )


def degrees_notes(workload: CapturedWorkload, found: Sequence[StatementDegree]) -> Iterator[str]:
    """Yield notes on the statements not in the table, and on the table's validity."""
    if never := [one for one in found if one.is_never]:
        share = numbers.share(sum(one.share for one in never), 1)
        yield (
            f"never with workers: {_counted(len(never), 'statement')} more, {share}; PostgreSQL plans no "
            "workers for statements that write rows, or begin or end a transaction"
        )
    if workload.omitted:
        yield f"not planned: {_counted(len(workload.omitted), 'statement')} that cannot be replayed"
    yield (
        "parameters have typical values from the planner's statistics; with other values the number of "
        "workers can differ, due to partition pruning or different row counts"
    )


def _decided(one: StatementDegree) -> tuple[str, str]:
    if one.degree is None:
        return NOTHING, one.why_none or ""
    return str(one.degree.planned), " and ".join(cause.what for cause in one.degree.causes)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
