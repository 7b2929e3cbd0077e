"""Profile the baseline before its plan is measured: its bounds stand in the reasons of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pgdyno.accelerate.request import AccelerateRequest
from pgdyno.base.errors import PgdynoError, StillChangedError
from pgdyno.base.ports import Progress
from pgdyno.measure.conditions import Conditions
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.variant import Variant
from pgdyno.profile.bounds import gains_by_lever, with_bounds
from pgdyno.profile.reading.profile import ProfileRequest, is_profiled, profile
from pgdyno.profile.records.profile_record import TransactionProfile

_CYCLES = 2  # of seven seconds: enough to rank lines
LEAST_BUDGET_S = 420.0  # arbitrary: of less time, the measurement needs all

_NOT_PROFILED = "the plan's reasons have no bounds of a profile: load from other hosts is not profiled yet"

ProfileOf: TypeAlias = Callable[[ProfileRequest, Progress], Sequence[TransactionProfile]]
"""Profiles the variants of a request."""


@dataclass(frozen=True)
class ProfiledPlan:
    """A plan with bounds in its reasons. ``gains`` are the most that each lever could bring.

    ``notes`` name the workloads whose profile failed.
    """

    plan: Plan
    gains: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def profiled_plan(
    request: AccelerateRequest,
    plan: Plan,
    as_booted: str,
    progress: Progress,
    profile_of: ProfileOf = profile,
) -> ProfiledPlan:
    """Return the plan with bounds of a profile; as it is where the budget is too small for one.

    ``as_booted`` says why idle CPUs are left as they are.
    """
    if request.budget_s < LEAST_BUDGET_S:
        return ProfiledPlan(plan)
    conditions = replace(request.conditions, as_booted=as_booted)
    found, notes = baseline_profiles(request.base, conditions, progress, profile_of)
    return ProfiledPlan(with_bounds(plan, found), gains_by_lever(found), notes)


def baseline_profiles(
    base: Variant, conditions: Conditions, progress: Progress, profile_of: ProfileOf = profile
) -> tuple[tuple[TransactionProfile, ...], tuple[str, ...]]:
    """Return a short profile of every workload that has one, and notes on those that failed.

    Load from other hosts is not profiled: its clients' work and the network's are not seen from here.
    """
    if conditions.load_from is not None:
        return (), (_NOT_PROFILED,)
    found, notes = list[TransactionProfile](), list[str]()
    for one in _requests(base, conditions):
        try:
            found += profile_of(one, progress)
        except StillChangedError:
            raise  # the machine was not given back
        except PgdynoError as error:
            notes.append(f"{one.workload.name} was not profiled: {error.message}")
    return tuple(found), tuple(notes)


def _requests(base: Variant, conditions: Conditions) -> Iterator[ProfileRequest]:
    for workload in conditions.workloads.values():
        if is_profiled(workload):
            yield ProfileRequest(
                variants=(base,),
                workload=workload,
                installation=conditions.installation,
                design=conditions.design,
                cycles=_CYCLES,
                as_booted=conditions.as_booted,
            )
