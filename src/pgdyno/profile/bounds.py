"""Add the upper bound of each change's gain, from a profile of the baseline, to a plan's reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgdyno.model.plans.plan import Plan, PlanLine
from pgdyno.profile.records.profile_record import TransactionProfile

_NAMED = 2  # lines named per bound


def with_bounds(plan: Plan, profiles: Sequence[TransactionProfile]) -> Plan:
    """Return the plan with the bound appended to the reason of each change that a profile covers."""
    return replace(plan, lines=tuple(_with_bound(line, profiles) for line in plan.lines))


def gains_by_lever(profiles: Sequence[TransactionProfile]) -> dict[str, float]:
    """Return each lever's largest possible gain over all workloads, as a fraction of the throughput."""
    gains = [(lever, one.gain) for profile in profiles for one in profile.advice for lever in one.levers]
    return {lever: max(gain for other, gain in gains if other == lever) for lever, _ in gains}


def _with_bound(line: PlanLine, profiles: Sequence[TransactionProfile]) -> PlanLine:
    bounds = [*_bounds(line.change.lever, profiles)]
    return (
        replace(line, reason=f"{line.reason}; by a profile of the baseline, {', '.join(bounds)}")
        if bounds
        else line
    )


def _bounds(lever: str, profiles: Sequence[TransactionProfile]) -> Iterator[str]:
    for profile in profiles:
        for one in profile.advice:
            if lever in one.levers:
                yield f"at most {one.gain:+.0%} on {profile.workload} ({', '.join(one.lines[:_NAMED])})"
