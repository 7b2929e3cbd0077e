"""Conversion of values with a scale to numbers, and back to PostgreSQL's text format.

Texts are in ``DateStyle`` ISO, ``IntervalStyle`` iso_8601 and time zone UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isfinite

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1 << 62  # of integers: the difference of two fits into 64 bits
_MOST_DECIMALS = 15
_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000
_LATEST_US = 253_402_300_799_999_999  # year 9999: numpy and PostgreSQL format later ones differently
_EARLIEST_US = -62_135_596_800_000_000  # start of year 1
_TIME = re.compile(r"(\d+):(\d+):(\d+)(?:\.(\d+))?")
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:\+00)?)?")
_DURATION = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?)?"
)
_UNITS_US = (
    365 * _DAY_US,
    30 * _DAY_US,
    7 * _DAY_US,
    _DAY_US,
    3600 * _SECOND_US,
    60 * _SECOND_US,
    _SECOND_US,
)


@dataclass(frozen=True)
class Scale:
    """A type's values as numbers. ``parse`` returns None for a text without a place on the scale.

    ``usual`` is the default range without known bounds. ``is_whole``: values are integers.
    """

    parse: Callable[[str], float | None]
    render: Callable[[NDArray[np.generic]], list[str]]
    usual: tuple[float, float]
    is_whole: bool = True


def scale_of(type_: str, labels: Sequence[str], known: Sequence[str], modifier: int) -> Scale | None:
    """Return the scale of a type; None if its values are not convertible to numbers.

    ``known`` are values of the column: for numeric without a scale, they show the number of decimal places.
    """
    if type_ == "bool":
        return _labels(("f", "t"))
    if labels:
        return _labels(labels)
    if type_ == "numeric":
        return _decimals(known, modifier)
    return _SCALES.get(type_) or RANGES.get(type_)


def _whole(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if abs(value) < _LARGEST else None


def _texts(values: NDArray[np.generic]) -> list[str]:
    return list(map(str, values.tolist()))


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _decimals(known: Sequence[str], modifier: int) -> Scale:
    """Return the scale of ``numeric``: integers in units of the last decimal place, limited to 64 bits."""
    if modifier >= 4:  # PostgreSQL's format: precision and scale, plus a header of 4 bytes
        places = ((modifier - 4) & 0x7FF ^ 1024) - 1024
    else:
        places = max((len(one.partition(".")[2]) for one in known), default=0)
    places = min(max(places, 0), _MOST_DECIMALS)

    def parse(text: str) -> float | None:
        try:
            value = Decimal(text)
        except InvalidOperation:
            return None
        if not value.is_finite() or abs(scaled := value.scaleb(places)) >= Decimal(_LARGEST):
            return None
        return int(scaled)

    def render(values: NDArray[np.generic]) -> list[str]:
        if places == 0:
            return _texts(values)
        unit = 10**places
        return [
            f"{'-' if one < 0 else ''}{abs(one) // unit}.{abs(one) % unit:0{places}d}"
            for one in values.tolist()
        ]

    return Scale(parse, render, (1, 1000 * 10**places))


def _labels(labels: Sequence[str]) -> Scale:
    numbers = {label: number for number, label in enumerate(labels)}
    return Scale(
        numbers.get,
        lambda values: [labels[one] for one in np.clip(values, 0, len(labels) - 1).tolist()],
        (0, len(labels) - 1),
    )


def _instant(text: str) -> int | None:
    """Return a date or time stamp in microseconds since 1970; None for infinity and for years BC."""
    if _STAMP.fullmatch(text) is None:
        return None
    try:
        found = np.datetime64(text.removesuffix("+00").replace(" ", "T"), "us").astype(np.int64)
    except ValueError:
        return None
    return int(found)


def _day(text: str) -> int | None:
    instant = _instant(text)
    return None if instant is None else instant // _DAY_US


def _stamps(values: NDArray[np.generic]) -> list[str]:
    instants = np.clip(values.astype(np.int64), _EARLIEST_US, _LATEST_US).astype("datetime64[us]")
    return np.datetime_as_string(instants).tolist()  # type: ignore[no-any-return]


def _stamps_in_utc(values: NDArray[np.generic]) -> list[str]:
    return [f"{one}+00" for one in _stamps(values)]


def _days(values: NDArray[np.generic]) -> list[str]:
    days = np.clip(values.astype(np.int64), _EARLIEST_US // _DAY_US, _LATEST_US // _DAY_US)
    return np.datetime_as_string(days.astype("datetime64[D]")).tolist()  # type: ignore[no-any-return]


def _time_of_day(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = (int(found[part]) for part in (1, 2, 3))
    return ((hours * 60 + minutes) * 60 + seconds) * _SECOND_US + int((found[4] or "").ljust(6, "0")[:6])


def _times_of_day(values: NDArray[np.generic]) -> list[str]:
    instants = np.clip(values.astype(np.int64), 0, _DAY_US - 1).astype("datetime64[us]")
    return [one.partition("T")[2] for one in np.datetime_as_string(instants).tolist()]


def _duration(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS_US, strict=True)
    total = sum((Decimal(part) * unit for part, unit in parts if part is not None), Decimal(0))
    return int(total) if abs(total) < _LARGEST else None


def _durations(values: NDArray[np.generic]) -> list[str]:
    return [f"{one} microseconds" for one in values.tolist()]


def _ranges(bounds: Scale, length: int, form: str) -> Scale:
    """Return a scale of ranges of equal length, of which two overlap only if they are equal."""

    def render(values: NDArray[np.generic]) -> list[str]:
        lows = values.astype(np.int64) * length
        return list(map(form.format, bounds.render(lows), bounds.render(lows + length)))

    low, high = bounds.usual
    return Scale(lambda _: None, render, (low // length, high // length))


_2020_US = 1_577_836_800_000_000
_YEARS_US = 5 * 365 * _DAY_US
_INTEGER = Scale(_whole, _texts, (1, 1_000_000))
_FLOAT = Scale(_float, _texts, (0.0, 1000.0), is_whole=False)
_SCALES = {
    "int2": Scale(_whole, _texts, (1, 10_000)),
    "int4": _INTEGER,
    "int8": _INTEGER,
    "oid": _INTEGER,
    "float4": _FLOAT,
    "float8": _FLOAT,
    "date": Scale(_day, _days, (_2020_US // _DAY_US, (_2020_US + _YEARS_US) // _DAY_US)),
    "timestamp": Scale(_instant, _stamps, (_2020_US, _2020_US + _YEARS_US)),
    "timestamptz": Scale(_instant, _stamps_in_utc, (_2020_US, _2020_US + _YEARS_US)),
    "time": Scale(_time_of_day, _times_of_day, (0, _DAY_US - 1)),
    "interval": Scale(_duration, _durations, (0, _DAY_US)),
}
_HOUR_US = 3600 * _SECOND_US
RANGES = {
    f"{name}{kind}": _ranges(of, length, form)
    for name, of, length in (
        ("int4", _INTEGER, 1),
        ("int8", _INTEGER, 1),
        ("num", _INTEGER, 1),
        ("date", _SCALES["date"], 1),
        ("ts", _SCALES["timestamp"], _HOUR_US),
        ("tstz", _SCALES["timestamptz"], _HOUR_US),
    )
    for kind, form in (("range", "[{},{})"), ("multirange", "{{[{},{})}}"))
}
"""Scales of ranges by type: statistics have no values of them, so each is one day, hour or number long."""
