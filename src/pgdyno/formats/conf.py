"""A snippet for postgresql.conf or a file of its include_dir, with the reasons as comments."""

from __future__ import annotations

from pgdyno.formats._comments import comments
from pgdyno.formats._contract import Format, explanation, setting_lines, summary
from pgdyno.model.plan import Plan, PlanLine
from pgdyno.model.server import Server

FORMAT = Format("conf", "snippet for postgresql.conf")


def render(plan: Plan, server: Server) -> str:
    """Return the snippet. Values set by ALTER SYSTEM or on the command line still win over it."""
    head = [
        f"pgdyno: {summary(plan, server)}.",
        "Values set with ALTER SYSTEM or on the command line win over this file.",
    ]
    blocks = [comments(head), *map(_block, setting_lines(plan))]
    return "\n\n".join(blocks) + "\n"


def _block(line: PlanLine) -> str:
    return f"{comments(explanation(line))}\n{line.change.key} = {quoted(line.change.value)}"


def quoted(value: str) -> str:
    """Quote a value as postgresql.conf reads it: backslashes start escapes there."""
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
