"""Profile the baseline before its plan is measured: its bounds stand in the reasons of changes."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.app.acceleration.request import AccelerateRequest
from pgdyno.app.profiling.profile import ProfileRequest, is_profiled, profile
from pgdyno.model.errors import PgdynoError, StillChangedError
from pgdyno.model.plans.plan import Plan
from pgdyno.model.ports import Progress
from pgdyno.model.profiles.profile import TransactionProfile
from pgdyno.profiling.bounds import with_bounds

_CYCLES = 2  # of seven seconds: enough to rank lines
_LEAST_BUDGET_S = 420.0  # arbitrary: of less time, the measurement needs all


def profiled_plan(
    request: AccelerateRequest, plan: Plan, as_booted: str, progress: Progress
) -> tuple[Plan, tuple[str, ...]]:
    """Return the plan with bounds in its reasons, and notes on workloads whose profile failed.

    ``as_booted`` says why idle CPUs are left as they are.

    There are none where the budget is too small for it.
    """
    if request.budget_s < _LEAST_BUDGET_S:
        return plan, ()
    found, notes = list[TransactionProfile](), list[str]()
    for one in _requests(request, as_booted):
        try:
            found += profile(one, progress)
        except StillChangedError:
            raise  # the machine was not given back
        except PgdynoError as error:
            notes.append(f"{one.workload.name} was not profiled: {error.message}")
    return with_bounds(plan, found), tuple(notes)


def _requests(request: AccelerateRequest, as_booted: str) -> Iterator[ProfileRequest]:
    conditions = request.conditions
    for workload in conditions.workloads.values():
        if is_profiled(workload):
            yield ProfileRequest(
                variants=(request.base,),
                workload=workload,
                installation=conditions.installation,
                design=conditions.design,
                cycles=_CYCLES,
                as_booted=as_booted,
            )
