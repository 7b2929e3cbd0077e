"""Group statements by shape: the same text except for numbers in table names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from pgdyno.profile.records.profile_record import StatementTime

_NUMBER = re.compile(r"(?<=[A-Za-z_])\d+\b")


def by_shape(statements: Iterable[StatementTime]) -> tuple[StatementTime, ...]:
    """Add up the statements of each shape, most time first. A single statement keeps its text."""
    groups: defaultdict[str, list[StatementTime]] = defaultdict(list)
    for one in statements:
        groups[_NUMBER.sub("#", one.sql)].append(one)
    found = (_sum(shape, its) for shape, its in groups.items())
    return tuple(sorted(found, key=lambda one: -(one.planning_us + one.executing_us)))


def _sum(shape: str, statements: list[StatementTime]) -> StatementTime:
    if len(statements) == 1:
        return statements[0]
    return StatementTime(
        shape,
        sum(one.calls for one in statements),
        sum(one.planning_us for one in statements),
        sum(one.executing_us for one in statements),
        sum(one.rows for one in statements),
        sum(one.blocks for one in statements),
        sum(one.wal_records for one in statements),
    )
