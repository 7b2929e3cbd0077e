"""Expressions of pgbench's set command, evaluated as pgbench does.

Source: exprscan.l, exprparse.y and evaluateExpr() in pgbench.c, PostgreSQL 15 to 18: rounding of doubles to
integers half to even, integer division toward zero, errors on overflow, NULL, lazy AND, OR and CASE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pgdyno.workload.capture.scripts.arithmetic import (
    FUNCTIONS,
    Drawn,
    ExpressionError,
    Value,
    boolean,
    compared,
    computed,
    is_true,
    not_drawn,
    within,
)

_TOKEN = re.compile(
    r"""[ \t\r\f\v]+|\\\r?\n
    |(?P<double>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+(?:[eE][-+]?\d+)?)
    |(?P<integer>\d+)
    |(?P<variable>:[A-Za-z0-9_\x80-\U0010ffff]+)
    |(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)
    |(?P<operator><=|>=|<>|!=|<<|>>|[-+*/%(),=<>&|\#~])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_DIFFERENT = {"client_id": "from client to client", "random_seed": "from run to run", "default_seed": "so"}

Node: TypeAlias = Callable[[], Value]
"""Returns the value of a part of an expression: AND, OR and CASE leave parts out."""


def evaluate(text: str, variables: Mapping[str, Value]) -> Value:
    """Return an expression's value. Raises: ExpressionError."""
    parser = _Parser(list(_tokens(text)), variables)
    try:
        node = parser.expression()
        if parser.left:
            raise ExpressionError(f'"{parser.left[0][1]}" is not understood')
        return node()
    except RecursionError:
        raise ExpressionError("it is nested too deeply") from None


def _tokens(text: str) -> list[tuple[str, str]]:
    found = ((one.lastgroup, one[0]) for one in _TOKEN.finditer(text.strip()))
    return [(kind, word) for kind, word in found if kind is not None]


_LEVELS: Sequence[Mapping[str, str]] = (
    {"|": "|", "#": "#", "&": "&", "<<": "<<", ">>": ">>"},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/", "%": "%"},
)
"""Left-associative binary operators, from the loosest level to the tightest."""
_COMPARISONS = {"<": "<", "<=": "<=", "=": "=", "<>": "<>", "!=": "<>", ">": ">", ">=": ">="}
_KEYWORDS = frozenset(
    {
        "and",
        "or",
        "not",
        "is",
        "isnull",
        "notnull",
        "null",
        "true",
        "false",
        "case",
        "when",
        "then",
        "else",
        "end",
    }
)


class _Parser:
    """Parses tokens into a function that returns the value; precedence as in exprparse.y."""

    def __init__(self, tokens: list[tuple[str, str]], variables: Mapping[str, Value]) -> None:
        self.left = tokens
        self._variables = variables

    def expression(self) -> Node:
        """Parse OR, the loosest operator."""
        node = self._conjunction()
        while self._take_word("or"):
            node = _either(node, self._conjunction())
        return node

    def _conjunction(self) -> Node:
        node = self._negation()
        while self._take_word("and"):
            node = _both(node, self._negation())
        return node

    def _negation(self) -> Node:
        if self._take_word("not"):
            return _strict(lambda value: not boolean(value), self._negation())
        return self._test()

    def _test(self) -> Node:
        node = self._comparison()
        if self._take_word("isnull"):
            return _is(node, None)
        if self._take_word("notnull"):
            return _is_not(node, None)
        if not self._take_word("is"):
            return node
        test = _is_not if self._take_word("not") else _is
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self._take_word(word):
                return test(node, value)
        raise ExpressionError("IS takes NULL, TRUE or FALSE")

    def _comparison(self) -> Node:
        node = self._binary(0)
        sign = _COMPARISONS.get(self._next_operator())
        if sign is None:
            return node
        self.left.pop(0)
        return _strict(lambda one, other: compared(sign, one, other), node, self._binary(0))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while (sign := _LEVELS[level].get(self._next_operator())) is not None:
            self.left.pop(0)
            node = _operation(sign, node, self._binary(level + 1))
        return node

    def _unary(self) -> Node:
        if self._next_operator() == "+":
            self.left.pop(0)
            return self._unary()
        if self._next_operator() == "~":  # as loose as the other operators on bits
            self.left.pop(0)
            return _operation("#", _constant(-1), self._binary(1))
        if self._next_operator() != "-":
            return self._operand()
        self.left.pop(0)
        if self.left and self.left[0] == ("integer", str(1 << 63)):
            self.left.pop(0)
            return lambda: -(1 << 63)
        return _operation("-", lambda: 0, self._unary())

    def _operand(self) -> Node:
        kind, word = self._next()
        if (kind, word) == ("operator", "("):
            node = self.expression()
            self._expect(")")
            return node
        if kind == "variable":
            return self._variable(word[1:])
        if kind == "integer":
            return _constant(within(int(word), "a constant"))
        if kind == "double":
            if math.isinf(float(word)):
                raise ExpressionError("a double constant is out of range")
            return _constant(float(word))
        if kind == "word":
            return self._named(word.lower())
        raise ExpressionError(f'"{word}" is not understood')

    def _variable(self, name: str) -> Node:
        if name in _DIFFERENT and name not in self._variables:
            raise ExpressionError(f":{name} differs {_DIFFERENT[name]}, and a workload has one value for all")
        if name not in self._variables:
            raise ExpressionError(f":{name} is not set before")
        return _constant(self._variables[name])

    def _named(self, name: str) -> Node:
        if name in {"null", "true", "false"}:
            return _constant({"null": None, "true": True, "false": False}[name])
        if name == "case":
            return self._case()
        if name in _KEYWORDS:
            raise ExpressionError(f'"{name}" is not understood')
        self._expect("(")
        arguments: list[Node] = []
        if self._next_operator() != ")":
            arguments.append(self.expression())
            while self._next_operator() == ",":
                self.left.pop(0)
                arguments.append(self.expression())
        self._expect(")")
        return _call(name, arguments)

    def _case(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node = _constant(None)
        while self._take_word("when"):
            condition = self.expression()
            self._expect("then")
            branches.append((condition, self.expression()))
        if not branches:
            raise ExpressionError("CASE has no WHEN")
        if self._take_word("else"):
            otherwise = self.expression()
        self._expect("end")

        def chosen() -> Value:
            return next((then for when, then in branches if is_true(when())), otherwise)()

        return chosen

    def _next_operator(self) -> str:
        return self.left[0][1] if self.left and self.left[0][0] == "operator" else ""

    def _take_word(self, word: str) -> bool:
        is_next = bool(self.left) and self.left[0][0] == "word" and self.left[0][1].lower() == word
        if is_next:
            self.left.pop(0)
        return is_next

    def _next(self) -> tuple[str, str]:
        if not self.left:
            raise ExpressionError("it ends too early")
        return self.left.pop(0)

    def _expect(self, token: str) -> None:
        if (found := self._next()[1]).lower() != token:
            raise ExpressionError(f'"{token}" is expected in place of "{found}"')


def _constant(value: Value) -> Node:
    return lambda: value


def _strict(function: Callable[..., Value], *arguments: Node) -> Node:
    """Return a call of a function that is NULL if one of its arguments is."""

    def value() -> Value:
        values = [argument() for argument in arguments]
        return None if any(one is None for one in values) else function(*values)

    return value


def _both(first: Node, second: Node) -> Node:
    def value() -> Value:
        one = first()
        if one is not None and not boolean(one):
            return False
        other = second()
        if other is not None and not boolean(other):
            return False
        return None if one is None or other is None else True

    return value


def _either(first: Node, second: Node) -> Node:
    def value() -> Value:
        one = first()
        if one is not None and boolean(one):
            return True
        other = second()
        if other is not None and boolean(other):
            return True
        return None if one is None or other is None else False

    return value


def _is(node: Node, wanted: bool | None) -> Node:  # noqa: FBT001 — a value of the expression
    def value() -> Value:
        found = node()
        if isinstance(found, Drawn):
            raise not_drawn()
        return found is wanted

    return value


def _is_not(node: Node, wanted: bool | None) -> Node:  # noqa: FBT001 — a value of the expression
    test = _is(node, wanted)
    return lambda: not test()


def _operation(sign: str, left: Node, right: Node) -> Node:
    return _strict(lambda one, other: computed(sign, one, other), left, right)


def _call(name: str, arguments: Sequence[Node]) -> Node:
    """Return the call of a function. Raises: ExpressionError for one that is unknown, or cannot be drawn."""
    if name in {"hash", "hash_fnv1a", "hash_murmur2", "permute", "debug"}:
        raise ExpressionError(f"{name} cannot be drawn")
    function, wanted = FUNCTIONS.get(name, (None, 0))
    if function is None:
        raise ExpressionError(f'"{name}" is no function of pgbench')
    if len(arguments) != wanted and (wanted >= 0 or not arguments):
        raise ExpressionError(f"{name} takes {wanted if wanted >= 0 else 'at least 1'} arguments")
    return _strict(function, *arguments)
