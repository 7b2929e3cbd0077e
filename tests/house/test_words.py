"""Docstrings name their subject, and prose is wrapped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import ROOT, modules

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


def test_prose_is_wrapped_at_100_columns() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    documents += [path for name in ("guides", "decisions") for path in (ROOT / "docs" / name).glob("*.md")]
    long = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} columns"
        for path in documents
        for number, line in _prose(path.read_text(encoding="utf-8"))
        if len(line) > 100 and " " in line.strip()[:100]
    ]
    assert not long, "\n".join(long)


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a document that are no code, table or heading, each with its number."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("|", "#", "    ")):
            yield number, line
