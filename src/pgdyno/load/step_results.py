"""Step results reported by pgdyno-driver, validated: a load host is not trusted. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pgdyno.model.experiments.step_record import ClientRecord, IntervalRecord, RoleRecord

_PERCENTILES = ("p50", "p95", "p99", "p999", "max")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)  # of roles, statements and SQLSTATEs
_MOST_NAMES = 64  # in one list; the driver uses a fifth of that
_LARGEST = 1 << 63  # limit of the store's integers
_MOST_S, _LEAST_S = 1e9, 1e-9  # the driver counts nanoseconds
_MOST_US = 1e15

T = TypeVar("T")


@dataclass(frozen=True)
class StepResult:
    """The results of a step.

    ``began_s`` is the start of its clients on the monotonic clock; ``chores_s`` is the time of later work,
    such as index builds. The last interval ends with the clients, so it is shorter than the others; it is
    missing if shorter than a tenth of one.
    """

    began_s: float
    running_s: float
    chores_s: float
    roles: Mapping[str, RoleRecord]
    intervals: tuple[IntervalRecord, ...]
    client_cpu_us: float

    def has_worked(self, role: str) -> bool:
        """Whether a role has completed a transaction."""
        return role in self.roles and self.roles[role].transactions > 0


def step_result(
    began_s: float,
    ended: Mapping[str, Any],
    phase: Mapping[str, Any],
    intervals: Sequence[IntervalRecord],
    roles: Sequence[str],
) -> StepResult:
    """Return the results of a step from its last events and its reported intervals.

    ``roles`` must be present, unless there are none because the step only had chores.
    Raises: as ``interval_record``.
    """
    (arm,) = phase["arms"]
    found = {one.name: one for one in map(role_record, arm["roles"])}
    if found and not found.keys() >= {*roles}:
        raise ValueError("a role is missing")
    return StepResult(
        began_s=began_s,
        running_s=_seconds(arm["running_s"]),
        chores_s=_seconds(ended["chores_s"]),
        roles=found,
        intervals=from_the_first(intervals),
        client_cpu_us=_seconds(phase["driver"]["cpu_s"]) * 1e6,
    )


def role_record(role: Mapping[str, Any]) -> RoleRecord:
    """Return the record of one role. Raises: as ``interval_record``."""
    transactions, latency_ms = _count(role["transactions"]), _percentiles_ms(role["latency_us"])
    if transactions and not latency_ms:
        raise ValueError("transactions took no time")
    return RoleRecord(
        name=_name(role["name"]),
        transactions=transactions,
        statements=_named(role["statements"], lambda statement: _count(statement["count"])),
        latency_ms=latency_ms,
        lag_ms=_percentiles_ms(role["lag_us"]),
        clients=tuple(
            ClientRecord(_count(one["transactions"]), _seconds(one["ended_s"])) for one in role["clients"]
        ),
        retries=_named(role["retries"], _count),
        errors=_by_sqlstate(role["errors"]),
    )


def interval_record(event: Mapping[str, Any]) -> IntervalRecord:
    """Return the record of an interval, on the driver's clock.

    Raises: LookupError, TypeError, ValueError, ArithmeticError or AttributeError for an invalid event.
    """
    length_s = _seconds(event["length_s"])
    if length_s == 0:
        raise ValueError("an interval has no length")
    roles = {_name(role["name"]): role for role in event["roles"][:_MOST_NAMES]}
    return IntervalRecord(
        start_s=_seconds(event["t_s"]) - length_s,
        length_s=length_s,
        transactions={name: _count(role["transactions"]) for name, role in roles.items()},
        latency_ms_max={
            name: _microseconds(role["latency_us"]["max"]) / 1000
            for name, role in roles.items()
            if role["latency_us"]
        },
    )


def from_the_first(intervals: Sequence[IntervalRecord]) -> tuple[IntervalRecord, ...]:
    """Return intervals on the step's clock, which starts with the first interval."""
    began_s = intervals[0].start_s if intervals else 0.0
    return tuple(replace(one, start_s=one.start_s - began_s) for one in intervals)


def _percentiles_ms(summary_us: Mapping[str, Any] | None) -> dict[str, float]:
    if summary_us is None:
        return {}
    return {name: _microseconds(summary_us[name]) / 1000 for name in _PERCENTILES}


def _named(reported: Mapping[str, Any], read: Callable[[Any], T]) -> dict[str, T]:
    if len(reported) > _MOST_NAMES:
        raise ValueError("there are too many names")
    return {_name(name): read(value) for name, value in reported.items()}


def _by_sqlstate(errors: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return failed transactions by SQLSTATE, added up over a role's few statements."""
    counts: Counter[str] = Counter()
    for one in errors[:_MOST_NAMES]:
        counts[_name(one["sqlstate"])] += _count(one["count"])
    return dict(counts)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError("a name is invalid")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError("a count is invalid")
    return value


def _seconds(value: Any) -> float:
    seconds = _number(value, _MOST_S)
    if 0 < seconds < _LEAST_S:
        raise ValueError("a time is too short to be measured")
    return seconds


def _microseconds(value: Any) -> float:
    return _number(value, _MOST_US)


def _number(value: Any, most: float) -> float:
    if type(value) not in {int, float} or not math.isfinite(value) or not 0 <= value <= most:
        raise ValueError("a number is invalid")
    return float(value)
