"""Parse durations and percentages given on a command line."""

from __future__ import annotations

import re

from pgdyno.base.errors import UsageError

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"^([0-9]{1,15}(?:\.[0-9]{1,15})?)(ms|s|min|m|h)$")
_PERCENT = re.compile(r"^([0-9]{1,15}(?:\.[0-9]{1,15})?)%$")


def parse_duration_s(text: str) -> float:
    """Return seconds for ``8m``, ``90s``, ``100ms``, ``1.5h``. Raises: UsageError for anything else."""
    match = _DURATION.match(text.strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f'"{text}" is not a duration', hint="write for example 8m, 90s, 100ms or 1.5h")
    return float(match[1]) * _SECONDS[match[2]]


def parse_percent(text: str) -> float:
    """Return 0.05 for ``5%``. Raises: UsageError for anything else."""
    match = _PERCENT.match(text.strip())
    if match is None:
        raise UsageError(f'"{text}" is not a percentage', hint="write for example 5% or 0.5%")
    return float(match[1]) / 100
