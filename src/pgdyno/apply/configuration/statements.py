"""ALTER SYSTEM statements, quoted so that the server stores the exact value. Pure.

How values are quoted, lists above all, stands in ``postgres/alter_system.py``.
"""

from __future__ import annotations

import re

from psycopg import sql

from pgdyno.postgres.alter_system import QUOTED_LISTS, list_elements, statement_values

_NAME = re.compile(r"^(ALTER SYSTEM (?:RE)?SET )(\S+)")


def set_statement(name: str, value: str) -> sql.Composed:
    """Return the statement that makes ``value`` the server's, as a configuration file would mean it.

    Raises: SettingError for a value that ALTER SYSTEM cannot store.
    """
    literals = sql.SQL(", ").join(sql.Literal(each) for each in statement_values(name, value))
    return sql.SQL("ALTER SYSTEM SET {} = {}").format(_identifier(name), literals)


def reset_statement(name: str) -> sql.Composed:
    """Return the statement that takes a setting out of postgresql.auto.conf."""
    return sql.SQL("ALTER SYSTEM RESET {}").format(_identifier(name))


def restore_statement(name: str, value: str | None) -> sql.Composed:
    """Return the statement that restores a value; None means that nothing was set."""
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


def _identifier(name: str) -> sql.Identifier:
    """Return the name for SQL; a setting of an extension is two identifiers with a dot between them."""
    return sql.Identifier(*name.split("."))
