"""ALTER SYSTEM statements, quoted so that the server stores the exact value. Pure.

``postgres/alter_system.py`` defines how values, in particular lists, are quoted.
"""

from __future__ import annotations

import re

from psycopg import sql

from pgdyno.postgres.alter_system import QUOTED_LISTS, list_elements, statement_values

_NAME = re.compile(r"^(ALTER SYSTEM (?:RE)?SET )(\S+)")


def set_statement(name: str, value: str) -> sql.Composed:
    """Return the statement that sets ``value`` with its meaning in a configuration file.

    Raises: SettingError for a value that ALTER SYSTEM cannot store.
    """
    literals = sql.SQL(", ").join(sql.Literal(each) for each in statement_values(name, value))
    return sql.SQL("ALTER SYSTEM SET {} = {}").format(_identifier(name), literals)


def reset_statement(name: str) -> sql.Composed:
    """Return the statement that removes a setting from postgresql.auto.conf."""
    return sql.SQL("ALTER SYSTEM RESET {}").format(_identifier(name))


def restore_statement(name: str, value: str | None) -> sql.Composed:
    """Return the statement that restores a value; None: the setting was not set."""
    return reset_statement(name) if value is None else set_statement(name, value)


def text_of(statement: sql.Composed) -> str:
    """Return a statement as text, without quotes around the setting's name."""
    text = statement.as_string(None)
    return _NAME.sub(lambda match: match[1] + match[2].replace('"', ""), text, count=1) + ";"


def equal_values(name: str, one: str | None, other: str | None) -> bool:
    """Whether two values in configuration files are equal, ignoring spaces and quotes in lists."""
    if one == other or one is None or other is None or name.lower() not in QUOTED_LISTS:
        return one == other
    return list_elements(name, one) == list_elements(name, other)


def _identifier(name: str) -> sql.Identifier:
    """Return the identifier; an extension's setting consists of two, separated by a dot."""
    return sql.Identifier(*name.split("."))
