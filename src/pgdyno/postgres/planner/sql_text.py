"""Inspect a statement's text for its kind and calls, without parsing it. Pure.

What stands in comments and in constants is no part of it. The server alone parses statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# An E'…' constant ends at a quote without a backslash before it; others at one that is not doubled.
_SKIPPED = re.compile(
    r"""(?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*')
      | (?P<quoted>'(?:[^']|'')*')
      | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[^\W\d][\w]*)?)\$.*?\$(?P=tag)\$)
      | (?P<line>--[^\n]*)
      | (?P<block>/\*)
      | (?P<identifier>"(?:[^"]|"")*")""",
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"/\*|\*/")
_PARAMETER = re.compile(r"(?<![\w$])\$\d+")
_NAME = r'(?:"(?:[^"]|"")+"|(?<![\w$])[^\W\d][\w$]*+)'
_IDENTIFIER = r'"(?:[^"]|"")*"'
# An identifier in quotes that is not called is passed as a whole: what stands in it is no call.
_CALL = re.compile(rf"(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<name>{_NAME})\s*\(|{_IDENTIFIER}")
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_INDEX_BUILD = re.compile(r"\s*(?:create\s+(?:unique\s+)?index|reindex)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")


def without_constants(sql: str) -> str:
    """Return a statement with a blank for every comment and every constant in quotes."""
    return "".join(_kept(sql))


def first_word(sql: str) -> str:
    """Return the word that a statement begins with, in lower case; empty if there is none."""
    found = _WORD.search(without_constants(sql))
    return found[0].lower() if found else ""


def builds_index(sql: str) -> bool:
    """Whether it is CREATE INDEX or REINDEX."""
    return _INDEX_BUILD.match(without_constants(sql)) is not None


def has_parameter(sql: str) -> bool:
    """Whether there is a $1 or the like in it, for which a value would be needed."""
    return _PARAMETER.search(_bare(sql)) is not None


def has_several_statements(sql: str) -> bool:
    """Whether anything follows a semicolon."""
    _, _, rest = _bare(sql).partition(";")
    return rest.strip(" \t\r\n\f;") != ""


def calls_in(sql: str) -> frozenset[tuple[str | None, str]]:
    """Return possible function calls: schema, if named, and name, as in pg_proc."""
    return frozenset(
        (None if found["schema"] is None else _folded(found["schema"]), _folded(found["name"]))
        for found in _CALL.finditer(without_constants(sql))
        if found["name"] is not None
    )


def operators_in(sql: str) -> frozenset[str]:
    """Return the possible operators in a statement."""
    return frozenset(_OPERATOR.findall(_bare(sql)))


def _bare(sql: str) -> str:
    """Return a statement without identifiers in quotes as well."""
    return re.sub(_IDENTIFIER, " ", without_constants(sql))


def _kept(sql: str) -> Iterator[str]:
    at = 0
    while found := _SKIPPED.search(sql, at):
        yield sql[at : found.start()]
        yield found[0] if found["identifier"] else " "
        at = _end_of_block(sql, found.end()) if found["block"] else found.end()
    yield sql[at:]


def _end_of_block(sql: str, at: int) -> int:
    """Return where a comment ends, which may have others in it. One without an end goes to the last."""
    depth = 1
    for found in _BLOCK.finditer(sql, at):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(sql)


def _folded(name: str) -> str:
    """Return a name as the catalogs have it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
