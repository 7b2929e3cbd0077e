"""Form of a row of ``pg_settings``: a server may be none, and everything that reads settings relies on it.

Extensions show their numbers as they like; the form of values is checked for PostgreSQL's own settings.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pgdyno.base.errors import ServerError

_COLUMNS = 14
_NAME = re.compile(r"[A-Za-z_][\w.$ -]{0,199}")  # PostgreSQL's are shorter than 64 characters
_VALUES = {
    "bool": re.compile(r"on|off"),
    "integer": re.compile(r"-?[0-9]{1,19}"),  # 64 bits; modes of files are octal
    "real": re.compile(r"-?[0-9]{1,309}(\.[0-9]+)?(e[+-]?[0-9]{1,3})?"),
    "enum": re.compile(r"[ -~]{0,200}"),
    "string": re.compile(r".*", re.DOTALL),
}
_CONTEXTS = {"internal", "postmaster", "sighup", "superuser-backend", "backend", "superuser", "user"}
_UNIT = re.compile(r"[0-9]{0,9}(B|kB|MB|GB|TB|us|ms|s|min|h|d)")
_POSITIVE = {"block_size", "wal_block_size", "segment_size", "wal_segment_size"}
"""Sizes by which others are divided; PostgreSQL's are never 0."""


def check_row(row: tuple[Any, ...]) -> None:
    """Raise ServerError unless a row of ``SETTINGS_QUERY`` has the form of PostgreSQL's."""
    name = row[0] if row else None
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise _invalid("the name of a setting", name)
    if len(row) != _COLUMNS:
        raise _invalid(f'the row of "{name}"', row)
    *texts, enumvals, sourcefile, line, pending = row
    if not all(text is None or isinstance(text, str) for text in (*texts, sourcefile)):
        raise _invalid(f'"{name}"', row)
    if not (enumvals is None or (isinstance(enumvals, list) and all(isinstance(v, str) for v in enumvals))):
        raise _invalid(f'the values of "{name}"', enumvals)
    if not (isinstance(line, int | None) and isinstance(pending, bool)):
        raise _invalid(f'the place of "{name}"', (line, pending))
    _check_texts(name, *texts[1:])


def _check_texts(
    name: str,
    setting: str | None,
    unit: str | None,
    vartype: str | None,
    context: str | None,
    source: str | None,
    *values: str | None,
) -> None:
    if vartype not in _VALUES:
        raise _invalid(f'the type of "{name}"', vartype)
    if context not in _CONTEXTS or source is None:
        raise _invalid(f'the context of "{name}"', (context, source))
    if unit is not None and not _UNIT.fullmatch(unit):
        raise _invalid(f'the unit of "{name}"', unit)
    if "." in name:
        return
    for value in (setting or "", *(value for value in values if value is not None)):
        if not _is_valid(name, vartype, value):
            raise _invalid(f'"{name}"', value)


def _is_valid(name: str, vartype: str, value: str) -> bool:
    if not _VALUES[vartype].fullmatch(value):
        return False
    if vartype == "real":
        return math.isfinite(float(value))
    return name not in _POSITIVE or int(value) > 0


def _invalid(what: str, told: object) -> ServerError:
    return ServerError(
        f"the server gives an invalid value for {what}: {str(told)[:200]!a}",
        detail="PostgreSQL shows its settings in another form",
        hint="connect to the server itself if there is a proxy between",
    )
