"""A script for psql: ALTER SYSTEM for every setting, then a reload."""

from __future__ import annotations

import re

from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats._contract import (
    Format,
    comment,
    comments,
    explanation,
    restart_settings,
    setting_lines,
    summary,
)
from pgdyno.plan.formats._expressible import encodable
from pgdyno.postgres.alter_system import statement_values
from pgdyno.postgres.server import Server

FORMAT = Format("sql", "ALTER SYSTEM statements for psql")
_MARK = "--"
_LANGUAGE = "SQL"
_BMP_END = 0xFFFF
_PLAIN_NAME = re.compile(r"^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$")


def render(plan: Plan, server: Server) -> str:
    """Return the script. ALTER SYSTEM cannot run in a transaction: use psql without --single-transaction.

    Raises: SettingError for a value that ALTER SYSTEM cannot store; FormatError for a name or value that
    SQL cannot express.
    """
    head = comment(f"pgdyno: {summary(plan, server)}.", _MARK)
    blocks = [head, *map(_block, setting_lines(plan)), "SELECT pg_reload_conf();"]
    restarts = restart_settings(plan)
    if restarts:
        blocks.append(comment(f"Restart the server for: {', '.join(restarts)}.", _MARK))
    return "\n\n".join(blocks) + "\n"


def _block(line: PlanLine) -> str:
    values = ", ".join(map(quoted, statement_values(line.change.key, line.change.value)))
    explained = comments(explanation(line), _MARK)
    return f"{explained}\nALTER SYSTEM SET {_identifier(line.change.key)} = {values};"


def _identifier(name: str) -> str:
    """Quote a name part by part where necessary."""
    if _PLAIN_NAME.match(name):
        return name
    parts = encodable(name, _LANGUAGE).split(".")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def quoted(value: str) -> str:
    """Quote a literal, valid for any value of standard_conforming_strings.

    Raises: FormatError for a value that is not encodable in UTF-8, or contains a NUL.
    """
    doubled = encodable(value, _LANGUAGE).replace("'", "''")
    if "\\" not in value and value.isprintable():
        return f"'{doubled}'"
    return "E'" + "".join(map(_escaped, doubled.replace("\\", "\\\\"))) + "'"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04X}" if code <= _BMP_END else f"\\U{code:08X}"
