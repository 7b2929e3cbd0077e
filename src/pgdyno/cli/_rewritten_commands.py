"""Rewrite commands in texts so that the user can run them from the machine that forwarded the command."""

from __future__ import annotations

import os
import re
import shlex

from pgdyno.model.cells.cell import typed_at

LOADED_BY_CELL = frozenset({"bench", "compare", "run", "accelerate", "tune"})
"""Commands that take their load from the cell's load hosts."""
LOADED_THERE = frozenset({"profile"})
"""Commands for which the server's host generates the load itself."""
ON_CELL = LOADED_BY_CELL | LOADED_THERE | {"inspect", "advise", "apply", "status", "revert"}
"""All commands with ``--cell``."""
_ON_HOST = frozenset({"setup", "server", "build", "levers", "explain-degree", "switch", "workload", "awake"})
_ON_HOST |= {"report", "experiments", "bundle"}

_COMMAND = re.compile(rf"\bpgdyno ({'|'.join(sorted(ON_CELL | _ON_HOST))})\b(?! --cell\b)")


def as_typed(text: str) -> str:
    """Return a text with its commands rewritten to reach the server's host from the user's machine.

    Commands that pgdyno can forward get ``--cell``. The others work on files of that host and get the ssh
    command in front.
    """
    user = typed_at(os.environ)
    if user is None:
        return text

    def command(found: re.Match[str]) -> str:
        if found[1] in ON_CELL:
            return f"{found[0]} --cell {shlex.quote(user.cell)}"
        return f"{user.by_hand} {found[1]}"

    return _COMMAND.sub(command, text)
