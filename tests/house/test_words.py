"""Docstrings name their subject, prose is in the words of the field, and wrapped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
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
MOST = {
    "told|tells?|telling": 18,
    "said|says?|saying": 13,
    "asked|asks?": 59,
    "whose": 26,
    "besides?": 19,
    "somebody|someone|whoever": 24,
    "afresh|anew|meanwhile": 2,
    r"what (?:is|was|it(?! does)|they)": 21,  # without the heading "What it does" of levers
    "there (?:is|are) (?:no|none)": 68,
    "nor": 44,
    "so that": 79,
}
"""Uses in src/ and driver/src/ of words that need a second reading. Lower a number when it has fallen."""
_SLACK = 5  # so that not every sentence that goes asks for a new number
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


@pytest.mark.parametrize("words", MOST)
def test_words_that_need_a_second_reading_become_fewer(words: str) -> None:
    found = len(re.findall(rf"\b(?:{words})\b", _all_sources(), re.IGNORECASE))
    assert found <= MOST[words], f"{found} uses of {words}, {MOST[words]} at most: rephrase, subject first"
    assert found >= MOST[words] - _SLACK, f"only {found} uses of {words} are left: write that number here"


@cache
def _all_sources() -> str:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "driver" / "src").rglob("*.rs")]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


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
