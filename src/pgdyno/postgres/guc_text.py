"""Quoting and escapes of values in PostgreSQL's configuration files. Pure.

Source: src/backend/utils/misc/guc-file.l (GUC_STRING, DeescapeQuotedString).
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"''|\\([0-7]{1,3}|.)")
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unquoted(value: str) -> str:
    """Return the value of a token in a configuration file; an unquoted token is the value itself."""
    return _ESCAPE.sub(_unescaped, value[1:-1]) if value.startswith("'") else value


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped is None:
        return "'"
    if escaped[0] in "01234567":
        return chr(int(escaped, 8) & 0xFF)
    return _CONTROL.get(escaped, escaped)
