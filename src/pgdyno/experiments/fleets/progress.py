"""From a fleet's order and trials to its progress. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from pgdyno.model.fleets.fleet_order import FleetOrder, OrderedMachine
from pgdyno.model.fleets.fleet_progress import FleetProgress, MachineProgress
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState

_HOUR_S = 3600.0


def fleet_progress(
    order: FleetOrder,
    trials: Sequence[FleetTrial],
    took_s: Iterable[tuple[str, float]],
    events: Mapping[str, int],
    budget_s: float | None,
) -> FleetProgress:
    """Return how far a fleet is. ``took_s`` has machine and time of each trial that was made.

    A machine's trials take what its own took so far, else the other machines', else the experiment's budget.
    """
    by_machine: dict[str, list[float]] = {}
    for machine, seconds in took_s:
        by_machine.setdefault(machine, []).append(seconds)
    everywhere = [seconds for ones in by_machine.values() for seconds in ones]
    usual_s = fmean(everywhere) if everywhere else budget_s
    of: dict[str, list[FleetTrial]] = {}
    for trial in trials:
        of.setdefault(trial.machine, []).append(trial)
    machines = tuple(
        _machine(
            one, of.get(one.name, ()), fmean(by_machine[one.name]) if one.name in by_machine else usual_s
        )
        for one in order.machines
    )
    return FleetProgress(
        name=order.name,
        command=order.command,
        machines=machines,
        left_s=_longest([one.left_s for one in machines]),
        cost=sum(costs) if (costs := [one.cost for one in machines if one.cost is not None]) else None,
        is_measured=bool(everywhere),
        lost=events.get("lost", 0),
        dropped=events.get("dropped", 0),
    )


def _machine(ordered: OrderedMachine, trials: Sequence[FleetTrial], trial_s: float | None) -> MachineProgress:
    states: Mapping[FleetTrialState, int] = Counter(one.state for one in trials)
    count = max(ordered.trials, len(trials))  # the order may ask for fewer than it did
    is_priced = trial_s is not None and ordered.price_per_hour is not None
    left = count - states[FleetTrialState.DONE] - states[FleetTrialState.FAILED]
    return MachineProgress(
        machine=ordered.name,
        trials=count,
        done=states[FleetTrialState.DONE],
        measuring=states[FleetTrialState.LEASED],
        failed=states[FleetTrialState.FAILED],
        trial_s=trial_s,
        left_s=0.0 if left == 0 else None if trial_s is None else left * trial_s,
        cost=count * (trial_s or 0.0) / _HOUR_S * (ordered.price_per_hour or 0.0) if is_priced else None,
        reason=next((one.reason for one in reversed(trials) if one.reason), None),
    )


def _longest(times_s: Sequence[float | None]) -> float | None:
    known = [one for one in times_s if one is not None]
    return max(known) if len(known) == len(times_s) else None
