"""Rows of a PostgreSQL server taken apart, altered, and put together again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Value = bytes | None


@dataclass(frozen=True)
class Column:
    """A column as a RowDescription has it."""

    name: bytes
    type_oid: int
    rest: tuple[int, int, int, int, int]  # table, attribute; size of the type, modifier, format


def columns(body: bytes) -> list[Column]:
    """Return the columns of a RowDescription."""
    found, at = [], 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        end = body.index(b"\0", at)
        table, attribute, oid, size, modifier, format_ = struct.unpack_from("!ihihih", body, end + 1)
        found.append(Column(body[at:end], oid, (table, attribute, size, modifier, format_)))
        at = end + 19
    return found


def description(described: Sequence[Column]) -> bytes:
    """Return the RowDescription of columns."""
    parts = [struct.pack("!h", len(described))]
    for one in described:
        table, attribute, size, modifier, format_ = one.rest
        parts += [
            one.name, b"\0",
            struct.pack("!ihihih", table, attribute, one.type_oid, size, modifier, format_),
        ]  # fmt: skip
    return b"".join(parts)


def values(body: bytes) -> list[Value]:
    """Return the values of a DataRow."""
    found: list[Value] = []
    at = 2
    for _ in range(struct.unpack_from("!h", body)[0]):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        found.append(None if length < 0 else body[at : at + length])
        at += max(0, length)
    return found


def row(told: Sequence[Value]) -> bytes:
    """Return the DataRow of values."""
    parts = [struct.pack("!h", len(told))]
    parts += [struct.pack("!i", -1) if one is None else struct.pack("!i", len(one)) + one for one in told]
    return b"".join(parts)


def altered(body: bytes, described: Sequence[Column], alter: Callable[[Column, Value], Value]) -> bytes:
    """Return a DataRow with each value altered."""
    return row([alter(column, value) for column, value in zip(described, values(body), strict=True)])
