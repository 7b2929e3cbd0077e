"""Inspect a statement's text for its kind and its calls, without parsing it. Pure.

Comments and string constants are ignored. Only the server parses statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# An E'…' constant ends at a quote without a backslash before it; others end at one that is not doubled.
_SKIPPED = re.compile(
    r"""(?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*')
      | (?P<quoted>'(?:[^']|'')*')
      | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[^\W\d][\w]*)?)\$.*?\$(?P=tag)\$)
      | (?P<line>--[^\n\r]*)
      | (?P<block>/\*)
      | (?P<identifier>"(?:[^"]|"")*")""",
    re.VERBOSE | re.DOTALL,
)
_COMMENTS = frozenset({"line", "block"})
_SPACE = re.compile(r"[ \t\r\n\f\v]+")
_NEW_LINE = re.compile(r"[ \t\f\v]*[\r\n][ \t\r\n\f\v]*")
_BLOCK = re.compile(r"/\*|\*/")
_PARAMETER = re.compile(r"(?<![\w$])\$\d+")
_NAME = r'(?:"(?:[^"]|"")+"|(?<![\w$])[^\W\d][\w$]*+)'
_IDENTIFIER = r'"(?:[^"]|"")*"'
# The last alternative consumes a quoted identifier that is not called: its content cannot match as a call.
_CALL = re.compile(rf"(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<name>{_NAME})\s*\(|{_IDENTIFIER}")
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_INDEX_BUILD = re.compile(r"\s*(?:create\s+(?:unique\s+)?index|reindex)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d]\w*")


def without_constants(sql: str) -> str:
    """Return a statement with each comment and each quoted constant replaced by a space."""
    return "".join(_kept(sql))


def first_word(sql: str) -> str:
    """Return a statement's first word in lower case; empty if there is none."""
    found = _WORD.search(without_constants(sql))
    return found[0].lower() if found else ""


def builds_index(sql: str) -> bool:
    """Whether a statement is CREATE INDEX or REINDEX."""
    return _INDEX_BUILD.match(without_constants(sql)) is not None


def statements_in(script: str) -> tuple[str, ...]:
    """Return the statements of a script, without comments and with single spaces between words.

    Between two constants a line feed is kept: PostgreSQL joins them only if they are on different lines.
    """
    statements = [""]
    bare = "".join(" " if kind in _COMMENTS else text for text, kind in _pieces(script))
    for text, kind in _pieces(bare):
        if kind:
            statements[-1] += text
        elif _NEW_LINE.fullmatch(text):
            statements[-1] += "\n"
        else:
            first, *others = _SPACE.sub(" ", text).split(";")
            statements[-1] += first
            statements += others
    return tuple(one for text in statements if (one := text.strip(" \n")))


def has_parameter(sql: str) -> bool:
    """Whether a statement has a parameter such as $1."""
    return _PARAMETER.search(_bare(sql)) is not None


def has_several_statements(sql: str) -> bool:
    """Whether anything but space follows a statement's first semicolon."""
    _, _, rest = _bare(sql).partition(";")
    return rest.strip(" \t\r\n\f;") != ""


def calls_in(sql: str) -> frozenset[tuple[str | None, str]]:
    """Return possible function calls as pairs of schema (None if unqualified) and name, as in pg_proc."""
    return frozenset(
        (None if found["schema"] is None else _folded(found["schema"]), _folded(found["name"]))
        for found in _CALL.finditer(without_constants(sql))
        if found["name"] is not None
    )


def operators_in(sql: str) -> frozenset[str]:
    """Return the possible operators in a statement."""
    return frozenset(_OPERATOR.findall(_bare(sql)))


def _bare(sql: str) -> str:
    """Return a statement without comments, quoted constants and quoted identifiers."""
    return re.sub(_IDENTIFIER, " ", without_constants(sql))


def _kept(sql: str) -> Iterator[str]:
    return (text if kind in {None, "identifier"} else " " for text, kind in _pieces(sql))


def _pieces(sql: str) -> Iterator[tuple[str, str | None]]:
    """Yield the parts of a text with their kind: a group of ``_SKIPPED``; None between these."""
    at = 0
    while found := _SKIPPED.search(sql, at):
        yield sql[at : found.start()], None
        end = _end_of_block(sql, found.end()) if found["block"] else found.end()
        yield sql[found.start() : end], found.lastgroup
        at = end
    yield sql[at:], None


def _end_of_block(sql: str, at: int) -> int:
    """Return the end of a block comment, which may nest; an unterminated one ends with the text."""
    depth = 1
    for found in _BLOCK.finditer(sql, at):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(sql)


def _folded(name: str) -> str:
    """Return a name as in the catalogs: unquoted, or folded to lower case."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
