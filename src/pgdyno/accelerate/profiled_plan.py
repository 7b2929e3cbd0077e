"""Profile the baseline before the plan is measured; the bounds appear in the reasons for changes."""

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
from pgdyno.profile.view.statements_text import where_time_goes

_CYCLES = 2  # of seven seconds: enough to rank lines
LEAST_BUDGET_S = 420.0  # arbitrary: with less, the measurement needs all of the time

_NOT_PROFILED = "the plan's reasons have no profile bounds: load from other hosts is not profiled yet"

ProfileOf: TypeAlias = Callable[[ProfileRequest, Progress], Sequence[TransactionProfile]]
"""Profiles the variants of a request."""


@dataclass(frozen=True)
class ProfiledPlan:
    """A plan with bounds in its reasons. ``gains`` are the largest possible gains by lever.

    ``notes`` state where the statements' time goes, and name the workloads with a failed profile.
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
    """Return the plan with bounds from a profile; unchanged if the budget is too small for one.

    ``as_booted`` is the reason why CPU idling is left unchanged.
    """
    if request.budget_s < LEAST_BUDGET_S:
        return ProfiledPlan(plan)
    conditions = replace(request.conditions, as_booted=as_booted)
    found, notes = baseline_profiles(request.base, conditions, progress, profile_of)
    where = tuple(
        f"{one.workload}: {sentence}" for one in found if (sentence := where_time_goes(one.statements))
    )
    return ProfiledPlan(with_bounds(plan, found), gains_by_lever(found), (*where, *notes))


def baseline_profiles(
    base: Variant, conditions: Conditions, progress: Progress, profile_of: ProfileOf = profile
) -> tuple[tuple[TransactionProfile, ...], tuple[str, ...]]:
    """Return a short profile of every workload that can be profiled, and notes on failures.

    Load from other hosts is not profiled: the work of its clients and of the network is not visible here.
    """
    if conditions.load_from is not None:
        return (), (_NOT_PROFILED,)
    found, notes = list[TransactionProfile](), list[str]()
    for one in _requests(base, conditions):
        try:
            found += profile_of(one, progress)
        except StillChangedError:
            raise  # the machine was not restored
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
