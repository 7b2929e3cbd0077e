"""Statements as syntax trees, parsed by sqlglot."""

from __future__ import annotations

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from pgdyno.workload.capture.literals import NAME, NAMING

PARAMETER = re.compile(r"\$(\d+)")
_MARK = "pgdyno_parameter_"  # sqlglot takes "$1,$" for the beginning of a quoted text
_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_OUTSIDE_QUOTES = re.compile(rf"{_QUOTED}|\$\d+")
_COMMENT = re.compile(rf"{_QUOTED}|--[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACES = (exp.Ordered, exp.Group, exp.DataTypeParam)
_TEXTS = (
    exp.RawString, exp.ByteString, exp.BitString, exp.HexString, exp.UnicodeString, exp.National, exp.Heredoc,
)  # fmt: skip
_SQUASHED = re.compile(r"/\*, \.\.\. \*/")  # the rest of a list of constants, since PostgreSQL 18

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of statements that it does not parse further


def tree(sql: str) -> exp.Expression | None:
    """Return a statement's syntax tree, with placeholders for parameters; None if it cannot be parsed."""
    try:
        marked = _OUTSIDE_QUOTES.sub(_marked, without_comments(sql))
        parsed = normalize_identifiers(sqlglot.parse_one(marked, dialect="postgres"), dialect="postgres")
    except (SqlglotError, RecursionError):
        return None
    return parsed if isinstance(parsed, exp.Expression) else None


def parameter_count(sql: str) -> int:
    """Return the highest parameter number in a statement; 0 without parameters."""
    found = (PARAMETER.fullmatch(part) for part in _OUTSIDE_QUOTES.findall(without_comments(sql)))
    return max((int(one[1]) for one in found if one is not None), default=0)


def without_comments(sql: str) -> str:
    """Return a statement without comments, which may contain values, and surrounding space."""
    return _COMMENT.sub(lambda found: found[0] if found[0][0] in "'\"" else " ", sql).strip()


def constants(parsed: exp.Expression) -> list[str]:
    """Return a statement's strings and numbers, except column numbers, type modifiers, and single digits.

    Names of sequences and settings are no constants either.
    """
    numbers = (
        node
        for node in parsed.find_all(exp.Literal)
        if (node.is_string and not _is_name(node))
        or (node.is_number and len(node.name) > 1 and not isinstance(node.parent, _PLACES))
    )
    return [node.sql() for node in (*numbers, *parsed.find_all(*_TEXTS))]


def _is_name(node: exp.Literal) -> bool:
    """Whether a string names a sequence or a setting."""
    argument = without_wrapping(node)
    call = argument.parent
    if not isinstance(call, exp.Anonymous) or call.expressions[:1] != [argument]:
        return False
    return call.name.lower() in NAMING and NAME.fullmatch(node.sql()) is not None


def _marked(found: re.Match[str]) -> str:
    parameter = PARAMETER.fullmatch(found[0])
    return found[0] if parameter is None else f":{_MARK}{parameter[1]}"


def number_of(node: exp.Expression) -> int | None:
    """Return the number of a parameter's node; None for other nodes."""
    if not isinstance(node, exp.Placeholder) or not node.name.startswith(_MARK):
        return None
    return int(node.name.removeprefix(_MARK))


def is_squashed(sql: str) -> bool:
    """Whether the server shows only one constant of a list, and hides its length."""
    return _SQUASHED.search(sql) is not None


def without_wrapping(node: exp.Expression) -> exp.Expression:
    """Return the outermost node with the same value, including parentheses and casts around it."""
    while isinstance(node.parent, exp.Paren | exp.Cast) and node.arg_key == "this":
        node = node.parent
    return node


def within_wrapping(node: exp.Expression) -> exp.Expression:
    """Return the node within parentheses and casts."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return node


def without_sums(node: exp.Expression) -> exp.Expression:
    """Return the outermost sum or difference that a node is part of."""
    while isinstance(node.parent, exp.Add | exp.Sub | exp.Paren | exp.Cast):
        node = node.parent
    return node


def array_operand(node: exp.Expression) -> exp.Expression | None:
    """Return the value that is compared with the elements of ``ANY (ARRAY[node, …])``; None elsewhere."""
    array = node.parent
    any_of = without_wrapping(array).parent if isinstance(array, exp.Array) else None
    compared = any_of.parent if isinstance(any_of, exp.Any) else None
    if any_of is None or compared is None:
        return None
    other: exp.Expression = compared.this if any_of.arg_key == "expression" else compared.expression
    return other
