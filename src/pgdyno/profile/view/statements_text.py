"""The statements with most of the time: a sentence, and tables with rows read, plans and waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.base.text import shortened
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.profile.records.profile_record import StatementTime, TransactionProfile, share_of
from pgdyno.report.elements.tables import NOTHING, Table, columns

_MOST_ROWS = 12
_MOST_CHARACTERS = 70
_MUCH = 10.0  # rows read for each row returned, from which a sentence states them
_LEAST_SHARE = 0.2  # of a statement, to be the answer


def where_time_goes(statements: Sequence[StatementTime]) -> str:
    """Return the sentence on the statement with the most time, the first; empty if none was counted."""
    if not statements:
        return ""
    first, part = statements[0], share_of(statements[0], statements)
    share = numbers.share(part)
    if part < _LEAST_SHARE:
        return f"No statement takes more than {share} of the statements' time"
    reads = _reads(first)
    return f"{share} of the statements' time is {_name(first)}{', which ' if reads else ''}{reads}"


def _reads(one: StatementTime) -> str:
    """Return the rows read for the rows returned; empty if these are few, or unknown."""
    rows = one.rows / one.calls
    if one.rows_read is None or one.rows_read < _MUCH * max(rows, 1.0):
        return ""
    about = "about " if one.is_estimated else ""
    does = "return" if first_word(one.sql) in ("select", "with", "values", "table") else "change"
    return f"reads {about}{_count(one.rows_read)} rows to {does} {_count(rows)}"


def statement_tables(profile: TransactionProfile) -> Iterator[Table]:
    """Yield the statements' times, and their plans and waits; tables that differ by a number count as one."""
    shown = profile.statements[:_MOST_ROWS]
    if shown:
        titles = (
            "share",
            "calls",
            "planning µs",
            "executing µs",
            "rows read",
            "rows",
            "blocks",
            "WAL records",
        )
        yield Table(
            "Where the statements' time goes: calls per transaction, all else per call",
            columns("Statement", *titles, numbers_from=1),
            tuple(_row(profile, one) for one in shown),
        )
    known = [one for one in shown if one.node or one.waits]
    if known:
        heads = columns("Statement", "dearest node of its plan, by cost", "waits, by samples")
        yield Table("What the statements do", heads, tuple(map(_deeds, known)))


def _row(profile: TransactionProfile, one: StatementTime) -> tuple[str, ...]:
    per_call = (one.rows, one.blocks, one.wal_records)
    read = NOTHING if one.rows_read is None else f"{'≈ ' if one.is_estimated else ''}{_count(one.rows_read)}"
    return (
        _name(one),
        numbers.share(share_of(one, profile.statements), 1),
        _count(one.calls),
        _count(one.planning_us / one.calls),
        _count(one.executing_us / one.calls),
        read,
        *(_count(each / one.calls) for each in per_call),
    )


def _deeds(one: StatementTime) -> tuple[str, ...]:
    node = f"{numbers.share(one.node_share, 0)} {one.node}" if one.node else NOTHING
    waits = ", ".join(f"{numbers.share(share, 0)} {event}" for event, share in one.waits)
    return (_name(one), node, waits or NOTHING)


def _name(one: StatementTime) -> str:
    return one.name or shortened(" ".join(one.sql.split()), _MOST_CHARACTERS)


def _count(value: float) -> str:
    return f"{value:.3g}" if value < 10 else f"{value:,.0f}"
