"""Expressions of pgbench's command ``set``: a number, or a random number with an optional offset."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.model.experiments.captured import Between, Distribution

_TOKEN = re.compile(r"\s*(?:(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+)|(\d+)|(:?\w+)|(.))", re.DOTALL)
_BIGINT = range(-(1 << 63), 1 << 63)
_DISTRIBUTIONS: Mapping[str, Distribution] = {
    "random": "uniform",
    "random_gaussian": "gaussian",
    "random_exponential": "pareto",
    "random_zipfian": "zipfian",
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "greatest": max,
    "least": min,
    "int": int,
    "double": float,
}


class ExpressionError(Exception):
    """An invalid expression, or one with values that cannot be drawn; its text is the reason."""


@dataclass(frozen=True, eq=False)
class Source:
    """A random integer, drawn once per run of a script. Two sources are never equal."""

    between: Between


@dataclass(frozen=True)
class Drawn:
    """A random integer plus a constant."""

    source: Source
    plus: int = 0


Value = int | float | Drawn


def evaluate(text: str, variables: Mapping[str, Value]) -> Value:
    """Return an expression's value. Raises: ExpressionError."""
    reader = _Reader([_token(found) for found in _TOKEN.finditer(text.strip())], variables)
    try:
        value = reader.sum()
    except RecursionError:
        raise ExpressionError("too many nested parentheses") from None
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        raise ExpressionError("the expression has no value") from None
    if reader.left:
        raise ExpressionError(f'unexpected "{reader.left[0]}"')
    return value


def _token(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None)


class _Reader:
    """Reads an expression from its first token to its last."""

    def __init__(self, tokens: Sequence[str], variables: Mapping[str, Value]) -> None:
        self.left = list(tokens)
        self._variables = variables

    def sum(self) -> Value:
        """Read a sum of terms."""
        value = self._product()
        while self.left and self.left[0] in {"+", "-"}:
            operator, other = self.left.pop(0), self._product()
            value = _added(value, other) if operator == "+" else _added(value, _negative(other))
        return value

    def _product(self) -> Value:
        value = self._factor()
        while self.left and self.left[0] in {"*", "/", "%"}:
            operator, other = self.left.pop(0), self._factor()
            value = _multiplied(operator, _number(value), _number(other))
        return value

    def _factor(self) -> Value:
        word = self._next()
        if word == "-":
            return _negative(self._factor())
        if word == "(":
            value = self.sum()
            self._expect(")")
            return value
        if word.startswith(":") and len(word) > 1:
            if word[1:] not in self._variables:
                raise ExpressionError(f"{word} is not set before this line")
            return self._variables[word[1:]]
        if word.isdecimal():
            return _within(int(word))
        if word[0].isdecimal() or (word[0] == "." and len(word) > 1):
            return float(word)
        return self._function(word.lower())

    def _function(self, name: str) -> Value:
        if name not in _FUNCTIONS and name not in _DISTRIBUTIONS:
            raise ExpressionError(f'unsupported function or word "{name}"')
        self._expect("(")
        arguments = [_number(self.sum())]
        while self.left and self.left[0] == ",":
            self.left.pop(0)
            arguments.append(_number(self.sum()))
        self._expect(")")
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](*arguments)
        wanted = 2 if name == "random" else 3
        if len(arguments) != wanted:
            raise ExpressionError(f"{name} takes {wanted} arguments")
        low, high = int(arguments[0]), int(arguments[1])
        if low > high:
            raise ExpressionError(f"empty range from {low} to {high}")
        return Drawn(Source(Between(low, high, _DISTRIBUTIONS[name])))

    def _next(self) -> str:
        if not self.left:
            raise ExpressionError("unexpected end of the expression")
        return self.left.pop(0)

    def _expect(self, token: str) -> None:
        if (found := self._next()) != token:
            raise ExpressionError(f'expected "{token}" instead of "{found}"')


def _number(value: Value) -> int | float:
    if isinstance(value, Drawn):
        raise ExpressionError("a random number supports only addition of a constant")
    return value


def _negative(value: Value) -> int | float:
    return -_number(value)


def _added(one: Value, other: Value) -> Value:
    if isinstance(one, Drawn) and isinstance(other, int):
        return Drawn(one.source, _within(one.plus + other))
    if isinstance(other, Drawn) and isinstance(one, int):
        return Drawn(other.source, _within(other.plus + one))
    whole = _number(one) + _number(other)
    return _within(whole) if isinstance(whole, int) else whole


def _multiplied(operator: str, one: float, other: float) -> int | float:
    """Return a product, quotient or remainder; integer division truncates toward zero, as in C."""
    if isinstance(one, int) and isinstance(other, int):
        if operator == "*":
            return _within(one * other)
        quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
        return quotient if operator == "/" else one - other * quotient
    if operator == "%":
        raise ExpressionError("% takes integers")
    return one * other if operator == "*" else one / other


def _within(number: int) -> int:
    if number not in _BIGINT:
        raise ExpressionError("number out of range for bigint")
    return number
