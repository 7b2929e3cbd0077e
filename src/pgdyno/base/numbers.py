"""Format numbers as text. The only place in pgdyno where measured numbers are formatted. Pure.

A no-break space separates number and unit, negative numbers have a true minus sign (U+2212), commas
separate thousands. Infinite values and NaN are printed as such and never as a finite number.
"""

from __future__ import annotations

import math
from typing import Protocol

MINUS = "\N{MINUS SIGN}"
SPACE = "\N{NO-BREAK SPACE}"

_FACTOR_ABOVE = 100.0  # larger ratios read better as "×250" than as "+24,900 %"
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")  # powers of 1024, named as PostgreSQL names them


class Range(Protocol):
    """Has two ends, as an interval does."""

    @property
    def low(self) -> float:
        """The lower end."""
        ...

    @property
    def high(self) -> float:
        """The upper end."""
        ...


class Quantity(Protocol):
    """Has a name and a unit, as a metric does."""

    @property
    def name(self) -> str:
        """The name under which it is stored."""
        ...

    @property
    def unit(self) -> str:
        """Empty if it has none."""
        ...


def percent_digits(*ratios: float) -> int:
    """Return how many decimals to use for ratios shown side by side, e.g. an interval's ends."""
    changes = [abs(ratio - 1) * 100 for ratio in ratios if math.isfinite(ratio)]
    largest = max(changes, default=0.0)
    if largest >= 100:
        return 0
    return 1 if largest >= 0.3 else 2


def change(ratio: float, digits: int | None = None) -> str:
    """Return a ratio as a signed relative change: 1.192 → ``+19.2 %``. No sign where it rounds to zero."""
    if not math.isfinite(ratio):
        return _not_finite(ratio)
    if ratio >= _FACTOR_ABOVE:
        return factor(ratio)
    places = percent_digits(ratio) if digits is None else digits
    text = f"{abs(ratio - 1) * 100:,.{places}f}"
    sign = "" if float(text.replace(",", "")) == 0 else "+" if ratio > 1 else MINUS
    return f"{sign}{text}{SPACE}%"


def size_of_change(ratio: float, digits: int | None = None) -> str:
    """Return the absolute size of a change: 0.8 → ``20.0 %``; for sentences that state the direction."""
    return change(ratio, digits).lstrip(f"+{MINUS}")


def change_within(ratio: float, low: float, high: float) -> str:
    """Return a relative change with the same number of decimals as the ends of its interval."""
    return change(ratio, percent_digits(low, high))


def factor(ratio: float) -> str:
    """Return a ratio as a factor: ``×250``."""
    return f"×{ratio:,.0f}" if ratio < 1e6 else f"×{ratio:.1e}"


def share(part: float, digits: int | None = None) -> str:
    """Return a share of a whole: 0.85 → ``85 %``; ``digits`` None: three significant digits."""
    if not math.isfinite(part):
        return _not_finite(part)
    text = plain(part * 100) if digits is None else _signed(part * 100, digits)
    return f"{text}{SPACE}%"


def interval(bounds: Range) -> str:
    """Return both ends of an interval with the same number of decimals: ``+17.1 % … +21.4 %``."""
    return change_range(bounds.low, bounds.high)


def change_range(low: float, high: float) -> str:
    """Return two ratios as a range of relative changes."""
    digits = percent_digits(low, high)
    return f"{change(low, digits)}{SPACE}…{SPACE}{change(high, digits)}"


def number(value: float) -> str:
    """Return a number with about three significant digits and commas between thousands."""
    if not math.isfinite(value):
        return _not_finite(value)
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e15:
        return f"{value:.2e}".replace("-", MINUS)
    return _signed(value, 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 4)


def plain(value: float) -> str:
    """Return a set or counted (not measured) number: three significant digits, no trailing zeros."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value != 0 and not 1e-4 <= abs(value) < 1e15:
        return number(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    text = _signed(value, min(digits, 6))
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(size_bytes: float) -> str:
    """Return an amount of memory or storage in a suitable unit: ``1.5 GB`` (powers of 1024)."""
    if not math.isfinite(size_bytes):
        return _not_finite(size_bytes)
    unit_bytes, unit = byte_unit(size_bytes)
    return f"{plain(size_bytes / unit_bytes)}{SPACE}{unit}"


def byte_unit(size_bytes: float) -> tuple[int, str]:
    """Return the size in bytes and the name of the unit that suits an amount.

    The next unit begins at 1023.5, which would be shown as 1,024.
    """
    power = 0
    while abs(size_bytes) >= 1023.5 * 1024**power and power < len(_BYTE_UNITS) - 1:
        power += 1
    return 1024**power, _BYTE_UNITS[power]


def duration(duration_s: float) -> str:
    """Return a duration: ``100 ms``, ``6 s``, ``2 min 30 s``, ``1 h 5 min``."""
    if not math.isfinite(duration_s):
        return _not_finite(duration_s)
    size_s = abs(duration_s)
    if 0 < size_s < 0.9995:
        return f"{plain(duration_s * 1000)}{SPACE}ms"
    if size_s < 59.95:
        return f"{plain(duration_s)}{SPACE}s"
    if size_s < 3599.5:
        return _two_units(duration_s, "min", "s")
    return _two_units(duration_s / 60, "h", "min")


def short_duration(duration_s: float) -> str:
    """Return a duration, in µs if it is below a millisecond: ``52.3 µs``."""
    if 0 < abs(duration_s) < 0.001:
        return f"{plain(duration_s * 1e6)}{SPACE}µs"
    return duration(duration_s)


def quantity(metric: Quantity, value: float) -> str:
    """Return a metric's value with its unit."""
    if metric.unit == "B":
        return size(value)
    if metric.name.endswith(("_share", "_ratio")):
        return share(value, 1)
    return f"{number(value)}{SPACE}{metric.unit}" if metric.unit else number(value)


def p_value(probability: float) -> str:
    """Return a p-value as scientific journals print it."""
    return "< 0.001" if probability < 0.001 else f"{probability:.3f}"


def _two_units(amount: float, large: str, small: str) -> str:
    whole, rest = divmod(round(abs(amount)), 60)
    text = f"{whole}{SPACE}{large}" + (f" {rest}{SPACE}{small}" if rest else "")
    return MINUS + text if amount < 0 else text


def _signed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}".replace("-", MINUS)
    return text.removeprefix(MINUS) if float(text.lstrip(MINUS).replace(",", "")) == 0 else text


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    return "∞" if value > 0 else f"{MINUS}∞"
