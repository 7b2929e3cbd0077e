"""Parse counts and metrics, as printed by ``perf stat --json-output``: a line per event or further metric.

Versions of perf differ. Values are numbers or strings; a line may have a comma before its closing brace.
Event names may contain the type of cores (``cpu_core/cycles/``) and a privilege modifier (``cycles:u``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_UNENDED = re.compile(r",\s*}\s*$")
_NAME = re.compile(r"(?:(?P<unit>[\w.-]+)/)?(?P<event>[^/:]+)/?(?::(?P<limit>\w+)|(?P<of_unit>[a-z]+))?")
_USER_ALONE = "u"


@dataclass(frozen=True)
class Count:
    """A counter's value. ``ran`` is the fraction of the time in which it was counted."""

    value: float
    ran: float


@dataclass(frozen=True)
class PerfCounts:
    """A window's counts by event and metrics by name, without those that perf could not count.

    ``is_user_alone``: the kernel's work is excluded. ``unsettled`` are metrics and units with several values,
    for several types of cores or events.
    """

    counts: Mapping[str, Count]
    metrics: Mapping[str, float]
    is_user_alone: bool = False
    unsettled: frozenset[str] = frozenset()


def parse_perf_stat(lines: Iterable[str]) -> PerfCounts:
    """Return the counts and metrics; lines without a JSON object are skipped."""
    by_unit: dict[tuple[str, str], Count] = {}
    found: dict[str, set[float]] = {}
    limits = set()
    for entry in _entries(lines):
        if (value := _number(entry.get("counter-value"))) is not None:
            unit, event, limit = _named(str(entry.get("event", "")))
            by_unit.setdefault((unit, event), Count(value, (_number(entry.get("pcnt-running")) or 0.0) / 100))
            limits.add(limit)
        words = str(entry.get("metric-unit", "")).split()
        if words and (metric := _number(entry.get("metric-value"))) is not None:
            found.setdefault(words[-1], set()).add(metric)
    settled = {name: values.pop() for name, values in found.items() if len(values) == 1}
    return PerfCounts(
        _summed(by_unit), settled, limits == {_USER_ALONE}, frozenset(found.keys() - settled.keys())
    )


def _entries(lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        text = line.strip()
        if text.startswith("{"):
            try:
                entry = json.loads(_UNENDED.sub("}", text))
            except ValueError:
                continue
            yield entry


def _number(value: object) -> float | None:
    """Return a finite number; None for "<not counted>", "nan" and the like."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _named(event: str) -> tuple[str, str, str]:
    """Return an event's processor unit, name and privilege modifier."""
    found = _NAME.fullmatch(event.strip())
    if found is None:
        return "", event, ""
    return found["unit"] or "", found["event"], found["limit"] or found["of_unit"] or ""


def _summed(by_unit: Mapping[tuple[str, str], Count]) -> dict[str, Count]:
    """Return each event's count, summed over all types of cores; ``ran`` is the smallest."""
    sums: dict[str, Count] = {}
    for (_, event), count in by_unit.items():
        before = sums.get(event, Count(0.0, 1.0))
        sums[event] = Count(before.value + count.value, min(before.ran, count.ran))
    return sums
