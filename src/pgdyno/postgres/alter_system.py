"""Literals for configuration files and ALTER SYSTEM, so quoted that the server has exactly the value.

In six list settings (GUC_LIST_QUOTE) the server quotes each element separately:
``SET shared_preload_libraries = 'a,b'`` would name *one* library called "a,b", and the server would not
start again. Extensions cannot define such settings (guc.c refuses it), so the list below is complete.
pg_dump has the same list (variable_is_guc_list_quote in src/bin/pg_dump/dumputils.c).
Configuration files: src/backend/utils/misc/guc-file.l (GUC_STRING, DeescapeQuotedString).
"""

from __future__ import annotations

import re

from pgdyno.base.errors import SettingError

_FOLDED_LISTS = frozenset({"search_path", "temp_tablespaces"})  # identifiers: lower case unless quoted
_PATH_LISTS = frozenset(
    {
        "local_preload_libraries",
        "session_preload_libraries",
        "shared_preload_libraries",
        "unix_socket_directories",
    }
)
QUOTED_LISTS = _FOLDED_LISTS | _PATH_LISTS
_ELEMENT = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^",]*))\s*(?P<end>,|$)')


def statement_values(name: str, value: str) -> tuple[str, ...]:
    """Return the literals for ALTER SYSTEM SET that store a value written as in a configuration file.

    Raises: SettingError for a value that ALTER SYSTEM cannot store.
    """
    if "\n" in value:
        raise SettingError(f'ALTER SYSTEM cannot set "{name}" to a value containing a line feed')
    if "\0" in value:
        raise SettingError(f'ALTER SYSTEM cannot set "{name}" to a value containing a NUL byte')
    if name.lower() not in QUOTED_LISTS:
        return (value,)
    elements = list_elements(name, value)
    if not elements:
        raise SettingError(
            f'ALTER SYSTEM cannot set "{name}" to an empty list',
            hint="reset it instead, or edit postgresql.conf",
        )
    return elements


def list_elements(name: str, value: str) -> tuple[str, ...]:
    """Split a list setting's value as the server does (SplitIdentifierString, SplitDirectoriesString).

    Raises: SettingError if the server could not split it.
    """
    elements = []
    position = 0
    while value.strip():
        match = _ELEMENT.match(value, position)
        if match is None:
            raise SettingError(f'invalid list syntax in parameter "{name}": "{value}"')
        if match["quoted"] is not None:
            elements.append(match["quoted"].replace('""', '"'))
        else:
            plain = match["plain"].rstrip()
            elements.append(plain.lower() if name.lower() in _FOLDED_LISTS else plain)
        position = match.end()
        if not match["end"]:
            break
    return tuple(elements)


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
