"""Values of pgbench's set command, and its operators and functions on them. Pure.

Source: evalStandardFunc(), coerceToInt() and putVariableValue() in pgbench.c, PostgreSQL 15 to 18.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pgdyno.model.experiments.captured import PARAMETERISED, Between, Distribution

_BIGINT = range(-(1 << 63), 1 << 63)
_DISTRIBUTIONS: Mapping[str, Distribution] = {
    "random_gaussian": "gaussian",
    "random_exponential": "exponential",
    "random_zipfian": "zipfian",
}


class ExpressionError(Exception):
    """An invalid expression, or one with values that the driver cannot draw; its text is the reason."""


@dataclass(frozen=True, eq=False)
class Source:
    """A random integer, drawn once in each run of a script. Two of them are never the same."""

    between: Between


@dataclass(frozen=True)
class Drawn:
    """A random integer plus a number."""

    source: Source
    plus: int = 0


Value: TypeAlias = int | float | Drawn | None
"""The value of an expression: bool, int, float, a random integer, or NULL."""


def text_of(value: float | None) -> str | None:
    """Return the text that pgbench sends for a value; None is NULL. Doubles have 15 digits (``%.15g``)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if math.isnan(value) else f"{value:.15g}"


def computed(sign: str, one: Value, other: Value) -> Value:
    """Return the value of an arithmetic or bit operator. Random integers are only added to."""
    if isinstance(one, Drawn) and sign in {"+", "-"}:
        return _moved(one, _whole(other) * (1 if sign == "+" else -1))
    if isinstance(other, Drawn) and sign == "+":
        return _moved(other, _whole(one))
    if sign in _ON_INTEGERS or not (isinstance(one, float) or isinstance(other, float)):
        return _on_integers(sign, _integer(one), _integer(other))
    left, right = _double(one), _double(other)
    if sign == "/":
        return _quotient(left, right)
    return _OF_DOUBLES[sign](left, right)


_ON_INTEGERS = frozenset("%|#&") | {"<<", ">>"}
_OF_DOUBLES: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_OF_INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "|": operator.or_,
    "#": operator.xor,
    "&": operator.and_,
}


def _on_integers(sign: str, one: int, other: int) -> int:
    match sign:
        case "/" | "%":
            if other == 0:
                raise ExpressionError("division by zero")
            quotient = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
            return within(quotient if sign == "/" else one - other * quotient, sign)
        case "<<" | ">>":
            if other not in range(64):
                raise ExpressionError(f"{sign} by {other} is undefined")
            return _wrapped(one << other) if sign == "<<" else one >> other
        case _:
            return within(_OF_INTEGERS[sign](one, other), sign)


def _quotient(one: float, other: float) -> float:
    """Return a quotient of doubles by IEEE 754, which C divides by: n / 0.0 is infinite or NaN."""
    if other:
        return one / other
    return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)


def compared(sign: str, one: Value, other: Value) -> bool:
    """Return the value of a comparison: of doubles if one of both is, else of integers."""
    pair: tuple[float, float] = (
        (_double(one), _double(other))
        if isinstance(one, float) or isinstance(other, float)
        else (_integer(one), _integer(other))
    )
    compare = {
        "<": operator.lt, "<=": operator.le, "=": operator.eq,
        "<>": operator.ne, ">": operator.gt, ">=": operator.ge,
    }[sign]  # fmt: skip
    return bool(compare(*pair))


def _random(low: Value, high: Value) -> Drawn:
    return _drawn(low, high, Between(0, 0))


def _random_by(name: str) -> Callable[[Value, Value, Value], Drawn]:
    distribution = _DISTRIBUTIONS[name]
    least, most = PARAMETERISED[distribution]

    def draw(low: Value, high: Value, parameter: Value) -> Drawn:
        number = _double(parameter)
        if not least <= number <= most:
            limits = f"from {least:g}" + ("" if math.isinf(most) else f" to {most:g}")
            limits = "greater than 0" if distribution == "exponential" else limits
            raise ExpressionError(f"{name} takes a parameter {limits}, not {number:g}")
        return _drawn(low, high, Between(0, 0, distribution, number))

    return draw


def _drawn(low: Value, high: Value, between: Between) -> Drawn:
    least, most = _integer(low), _integer(high)
    if least > most:
        raise ExpressionError(f"no number is from {least} to {most}")
    if most - least + 1 not in _BIGINT:
        raise ExpressionError(f"the range from {least} to {most} is too large")
    return Drawn(Source(replace(between, low=least, high=most)))


def _extreme(choose: Callable[..., float]) -> Callable[..., Value]:
    def value(*arguments: Value) -> Value:
        if any(isinstance(one, float) for one in arguments):
            return choose(map(_double, arguments))
        return choose(map(_integer, arguments))

    return value


def _absolute(value: Value) -> Value:
    return abs(value) if isinstance(value, float) else within(abs(_integer(value)), "abs")


def _real(function: Callable[[float], float]) -> Callable[[Value], float]:
    """Return a function of a double; outside its domain NaN, as in C."""

    def value(argument: Value) -> float:
        number = _double(argument)
        try:
            return function(number)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if number == 0 else math.nan

    return value


def _power(base: Value, exponent: Value) -> float:
    try:
        return math.pow(_double(base), _double(exponent))
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if _double(base) == 0 else math.nan


def _moved(one: Drawn, plus: int) -> Drawn:
    between, whole = one.source.between, one.plus + plus
    within(between.low + whole, "+")
    within(between.high + whole, "+")
    return Drawn(one.source, whole)


def _whole(value: Value) -> int:
    """Return the addend of a random integer, which must be an integer itself."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise not_drawn()


def _integer(value: Value) -> int:
    """Return an integer; doubles are rounded half to even, as rint() does."""
    if isinstance(value, Drawn):
        raise not_drawn()
    if isinstance(value, bool) or value is None:
        raise ExpressionError("a boolean is no integer")
    if isinstance(value, int):
        return value
    if math.isnan(value) or math.isinf(value):
        raise ExpressionError(f"{value:g} is no integer")
    return within(round(value), "int")


def _double(value: Value) -> float:
    if isinstance(value, Drawn):
        raise not_drawn()
    if isinstance(value, bool) or value is None:
        raise ExpressionError("a boolean is no number")
    return float(value)


def boolean(value: Value) -> bool:
    """Return a boolean. Raises: ExpressionError for a value that pgbench does not coerce to one."""
    if isinstance(value, bool):
        return value
    raise not_drawn() if isinstance(value, Drawn) else ExpressionError("a number is no boolean")


def is_true(value: Value) -> bool:
    """Whether CASE takes a condition for true: other numbers than 0 are."""
    if isinstance(value, Drawn):
        raise not_drawn()
    return bool(value)


def not_drawn() -> ExpressionError:
    """Return the error of an operation on a random number that the driver does not have."""
    return ExpressionError("of a random number, only a sum with an integer can be drawn")


def within(number: int, what: str) -> int:
    """Return the number. Raises: ExpressionError, naming the operation, beyond bigint."""
    if number not in _BIGINT:
        raise ExpressionError(f"{what}: the result is out of bigint's range")
    return number


def _wrapped(number: int) -> int:
    """Return the lowest 64 bits as a signed integer, as a shift in C leaves them."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


FUNCTIONS: Mapping[str, tuple[Callable[..., Value], int]] = {
    "abs": (_absolute, 1),
    "double": (_double, 1),
    "exp": (_real(math.exp), 1),
    "greatest": (_extreme(max), -1),
    "int": (lambda value: value if isinstance(value, Drawn) else _integer(value), 1),
    "least": (_extreme(min), -1),
    "ln": (_real(math.log), 1),
    "mod": (lambda one, other: computed("%", one, other), 2),
    "pi": (lambda: math.pi, 0),
    "pow": (_power, 2),
    "power": (_power, 2),
    "random": (_random, 2),
    **{name: (_random_by(name), 3) for name in _DISTRIBUTIONS},
    "sqrt": (_real(math.sqrt), 1),
}
"""Functions with the number of their arguments; -1: at least one."""
