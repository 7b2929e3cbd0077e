"""Docstrings name their subject: the first line has no riddle in it."""

from __future__ import annotations

import ast
import re

from tests.house.source import modules

RIDDLES = {
    "what": 'name the thing: "the planned value", not "what is planned"',
    "that which": "name the thing",
    "whoever": "say who: the user, the owner, another process",
    "somebody": "say who: the user, the owner, another process",
    "someone": "say who: the user, the owner, another process",
    "anew": "again; of servers: newly started",
    "afresh": "again; of servers: newly started",
    "asked for": "requested",
    "so many": "N, or up to N",
    "way back": "restore, rollback",
    "held against": "compared with, verified against",
}
_ANY = re.compile(rf"\b({'|'.join(RIDDLES)})\b", re.IGNORECASE)


def test_first_lines_of_docstrings_name_their_subject() -> None:
    found = []
    for module in modules():
        for node in module.nodes:
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                continue
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if riddle := _ANY.search(first):
                place = f"{module.place}:{getattr(node, 'lineno', 1)}"
                found.append(f'{place} says "{riddle[1]}": {RIDDLES[riddle[1].lower()]}: {first}')
    assert not found, "\n".join(found)
