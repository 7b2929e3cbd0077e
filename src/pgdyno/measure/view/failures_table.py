"""Failed transactions, as a table for page and terminal. Pure."""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.measure.verdicts.failures import FailedTransactions, failed_transactions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.report.elements.tables import NOTHING, Column, Table, columns

_MOST_REASONS = 8  # of an arm


def failures_table(experiment: Experiment) -> Table:
    """Return every reason for which transactions of a variant failed; empty if none failed."""
    rows = [row for one in failed_transactions(experiment) for row in _rows(one)]
    return Table(
        "Failed transactions, which count in no rate",
        (
            *columns("Workload", "Variant", numbers_from=2),
            *columns("Share", "Failed", numbers_from=0),
            Column("SQLSTATE"),
            Column("Statement"),
        ),
        tuple(rows),
    )


def _rows(one: FailedTransactions) -> list[tuple[str, ...]]:
    if not one.failures:
        return [(one.workload, one.variant, numbers.share(0.0), "0", NOTHING, NOTHING)]
    failed = sum(reason.count for reason in one.failures)
    rows: list[tuple[str, ...]] = [
        (
            one.workload,
            one.variant,
            numbers.share(one.share * reason.count / failed),
            f"{reason.count:,}",
            reason.sqlstate,
            reason.statement or NOTHING,
        )
        for reason in one.failures[:_MOST_REASONS]
    ]
    if others := one.failures[_MOST_REASONS:]:
        count = sum(reason.count for reason in others)
        share = numbers.share(one.share * count / failed)
        rows.append((one.workload, one.variant, share, f"{count:,}", "others", NOTHING))
    return rows
