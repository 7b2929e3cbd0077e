"""A snippet for postgresql.conf or a file of its include_dir, with the reasons as comments."""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.plan.formats._contract import Format, comments, explanation, setting_lines, summary
from pgdyno.plan.formats._expressible import encodable, setting_name
from pgdyno.postgres.server import Server

FORMAT = Format("conf", "snippet for postgresql.conf")
_LANGUAGE = "postgresql.conf"


def render(plan: Plan, server: Server) -> str:
    """Return the snippet. Values set by ALTER SYSTEM or on the command line override it.

    Raises: FormatError for a name or value that postgresql.conf cannot express.
    """
    head = [
        f"pgdyno: {summary(plan, server)}.",
        "Values set with ALTER SYSTEM or on the command line override this file.",
    ]
    blocks = [comments(head), *map(_block, setting_lines(plan))]
    return "\n\n".join(blocks) + "\n"


def _block(line: PlanLine) -> str:
    name = setting_name(line.change.key, _LANGUAGE)
    return f"{comments(explanation(line))}\n{name} = {quoted(line.change.value)}"


def quoted(value: str) -> str:
    """Quote a value for postgresql.conf, where backslashes start escapes and a newline ends the value.

    Raises: FormatError for a value that is not encodable in UTF-8, or contains a NUL.
    """
    escaped = encodable(value, _LANGUAGE).replace("\\", "\\\\").replace("'", "''")
    return "'" + "".join(map(_octal, escaped)) + "'"


def _octal(character: str) -> str:
    """Return a character, or its bytes as three-digit octal escapes if it is not printable."""
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())
