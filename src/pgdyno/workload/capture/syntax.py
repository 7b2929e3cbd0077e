"""Statements as syntax trees, parsed by sqlglot, and the parameters that equal expressions in them share."""

from __future__ import annotations

import logging
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers

from pgdyno.workload.capture.literals import NAME, NAMING, Parameterised, in_place_of_parameters

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
_HAS_LISTS = re.compile(r"\bby\b|\bdistinct\s+on\b", re.IGNORECASE)
_LISTS = (exp.Group, exp.Order, exp.Distinct, exp.Window)
_WITHIN_LISTS = (exp.Ordered, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
_DIGITS = re.compile(rf"(?<={_MARK})\d+")
_MOST_CHARACTERS = 10_000  # arbitrary: time grows with the square of an expression's depth

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


def assigned(node: exp.Expression | None) -> exp.Expression | None:
    """Return the left side of an assignment in an UPDATE; None for other nodes."""
    if node is None or not isinstance(node.parent, exp.Update | exp.OnConflict):
        return None
    return node.this if node.arg_key == "expressions" else None


def array_operand(node: exp.Expression) -> exp.Expression | None:
    """Return the value that is compared with the elements of ``ANY (ARRAY[node, …])``; None elsewhere."""
    array = node.parent
    any_of = without_wrapping(array).parent if isinstance(array, exp.Array) else None
    compared = any_of.parent if isinstance(any_of, exp.Any) else None
    if any_of is None or compared is None:
        return None
    other: exp.Expression = compared.this if any_of.arg_key == "expression" else compared.expression
    return other


def shared(one: Parameterised, *, is_counted: bool = False) -> Parameterised:
    """Return a statement in which expressions that group or order rows have the same parameters everywhere.

    The server requires it, and counts equal expressions once: pg_stat_statements (``is_counted``) shows
    ``SELECT date_trunc($1, a) FROM t GROUP BY date_trunc('day', a)``, where $1 is 'day'.
    """
    has_lists = bool(one.values) and len(one.sql) <= _MOST_CHARACTERS and _HAS_LISTS.search(one.sql)
    parsed = tree(one.sql) if has_lists else None
    known: dict[int, object] = {its: (value, one.types.get(its)) for its, value in one.values.items()}
    same: dict[int, int] = {}  # parameters, with an equal one of a lower number
    for query in () if parsed is None else parsed.find_all(exp.Select):
        listed = [node for each in _within(query, *_LISTS) for node in _elements(each)]
        whole = {id(node) for node in (*listed, *(column.unalias() for column in query.expressions))}
        listed = [node for node in listed if not one.values.keys().isdisjoint(_numbers(node))]
        uses = defaultdict[str, list[exp.Expression]](list)
        for node in _within(query, *{type(element) for element in listed} - {exp.Placeholder}):
            uses[_form(node)].append(node)
        for element in listed:
            mine, alike = _numbers(element), uses.get(_form(element), [])
            constants = [known.get(its, its) for its in mine]
            equal = [use for use in map(_numbers, alike) if [known.get(its, its) for its in use] == constants]
            if is_counted and not any(one.values.keys().isdisjoint(use) for use in equal):
                counted = (_numbers(node) for node in alike if id(node) in whole)
                first = next((use for use in counted if _may_be(use, mine, known)), mine)
                known.update(zip(first, constants, strict=True))
                equal.append(first)
            for numbers in zip(*equal, strict=True):
                firsts = {_first(its, same) for its in numbers}
                same |= dict.fromkeys(firsts - {min(firsts)}, min(firsts))
    return _without(one, same) if same else one


def _within(query: exp.Select, *types: type[exp.Expression]) -> Iterator[exp.Expression]:
    """Yield a query's nodes of these types, without those of subqueries."""
    return (node for node in query.find_all(*types) if node.find_ancestor(exp.Select) is query)


def _elements(listed: exp.Expression) -> Iterator[exp.Expression]:
    """Yield the expressions in a list, also those grouped by parentheses or ROLLUP."""
    for node in listed.iter_expressions():
        yield node
        if isinstance(node, _WITHIN_LISTS):
            yield from _elements(node)


def _numbers(node: exp.Expression) -> list[int]:
    found = map(number_of, node.find_all(exp.Placeholder))
    return [number for number in found if number is not None]


def _form(node: exp.Expression) -> str:
    """Return a text that is equal for expressions that differ only in their parameters."""
    return _DIGITS.sub("", node.sql())


def _may_be(use: Sequence[int], mine: Sequence[int], known: Mapping[int, object]) -> bool:
    """Whether an expression has parameters that are not ``known`` in place of the constants of ``mine``."""
    return all(
        one not in known if other in known else one == other for one, other in zip(use, mine, strict=True)
    )


def _first(number: int, same: Mapping[int, int]) -> int:
    while number in same:
        number = same[number]
    return number


def _without(one: Parameterised, same: Mapping[int, int]) -> Parameterised:
    """Return a statement without the parameters that are the same as others."""
    gone = sorted(same)
    new = {
        its: (first := _first(its, same)) - bisect(gone, first)
        for its in range(1, parameter_count(one.sql) + 1)
    }
    return Parameterised(
        in_place_of_parameters(one.sql, {number: f"${its}" for number, its in new.items()}),
        {new[its]: value for its, value in one.values.items() if its not in same},
        {new[its]: type_ for its, type_ in one.types.items() if its not in same},
    )
