"""ALTER SYSTEM statements, quoted so that the server stores exactly the value that was meant. Pure.

Six settings are lists whose elements the server quotes one by one (GUC_LIST_QUOTE): for these,
``SET shared_preload_libraries = 'a,b'`` would name *one* library called "a,b", and the server would not
start again. Extensions cannot define such settings (guc.c refuses it), so that the list below is complete;
pg_dump has the same one (variable_is_guc_list_quote in src/bin/pg_dump/dumputils.c).
"""

from __future__ import annotations

import re

from psycopg import sql

from pgdyno.model.errors import SettingError

_FOLDED_LISTS = frozenset({"search_path", "temp_tablespaces"})  # of identifiers: without quotes, lower case
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

_NAME = re.compile(r"^(ALTER SYSTEM (?:RE)?SET )(\S+)")


def set_statement(name: str, value: str) -> sql.Composed:
    """Return the statement that makes ``value`` the server's, as a configuration file would mean it.

    Raises: SettingError for a value that ALTER SYSTEM cannot store.
    """
    if "\n" in value:
        raise SettingError(f'ALTER SYSTEM cannot set "{name}" to a value with a line feed in it')
    if name.lower() not in QUOTED_LISTS:
        return _set(name, sql.Literal(value))
    elements = list_elements(name, value)
    if not elements:
        raise SettingError(
            f'ALTER SYSTEM cannot set "{name}" to an empty list',
            hint="reset it instead, or edit postgresql.conf",
        )
    return _set(name, sql.SQL(", ").join(sql.Literal(element) for element in elements))


def reset_statement(name: str) -> sql.Composed:
    """Return the statement that takes a setting out of postgresql.auto.conf."""
    return sql.SQL("ALTER SYSTEM RESET {}").format(_identifier(name))


def restore_statement(name: str, value: str | None) -> sql.Composed:
    """Return the statement that brings back what was found; None means that nothing was set."""
    return reset_statement(name) if value is None else set_statement(name, value)


def text_of(statement: sql.Composed) -> str:
    """Return a statement as people would type it: names of settings need no quotes."""
    text = statement.as_string(None)
    return _NAME.sub(lambda match: match[1] + match[2].replace('"', ""), text, count=1) + ";"


def equal_values(name: str, one: str | None, other: str | None) -> bool:
    """Whether two values of a configuration file are written alike, spaces and quotes in lists aside."""
    if one == other or one is None or other is None or name.lower() not in QUOTED_LISTS:
        return one == other
    return list_elements(name, one) == list_elements(name, other)


def list_elements(name: str, value: str) -> tuple[str, ...]:
    """Split the value of a list as the server does (SplitIdentifierString, SplitDirectoriesString).

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


def _set(name: str, value: sql.Composable) -> sql.Composed:
    return sql.SQL("ALTER SYSTEM SET {} = {}").format(_identifier(name), value)


def _identifier(name: str) -> sql.Identifier:
    """Return the name for SQL; a setting of an extension is two identifiers with a dot between them."""
    return sql.Identifier(*name.split("."))
