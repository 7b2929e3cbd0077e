"""Check whether a search fits into its budget, before anything is started."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pgdyno.accelerate.profiled_plan import LEAST_BUDGET_S
from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.measure.arenas.datasets import is_loaded
from pgdyno.measure.decisions.time_needed import TimeNeeded, time_needed
from pgdyno.measure.design.parts import MOST_PARTS
from pgdyno.measure.design.schedule import for_arms
from pgdyno.model.tuning.limits import OwnerLimits
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.profile.reading.profile import is_profiled
from pgdyno.tune.resume import earlier_search
from pgdyno.tune.rounds_in_place import design_in_place
from pgdyno.tune.tune_request import SEARCH_SHARE, SHORTEN_SHARE, TuneRequest

_SERVERS = 3  # default, incumbent and candidate; in the proof: default, plan and answer
_SWITCH_S = 1.0  # assumed: an apply and a revert
_COPIED_BYTES_PER_S = 200e6  # assumed: CREATE DATABASE from a template, and its checkpoint
_RESTART_S = 10.0  # assumed: stopping, starting, and reading the data again
_PROFILE_S = 60.0  # assumed, per workload; measured: 50 s
_LEAST_TRIALS = 3  # arbitrary: fewer are not a search


@dataclass(frozen=True)
class _Needed:
    """The time for a configuration, for the proof, and, as a function of the budget, for profiles."""

    trial: TimeNeeded
    proof: TimeNeeded
    profile_s: Callable[[float], float]


def trials_within(request: TuneRequest) -> str:
    """Return a sentence on how many configurations fit into the budget, if each takes one round.

    Raises: UsageError with the budget needed, if it is too small for a search or its proof; as
    ``earlier_search`` does.
    """
    earlier_search(request)
    return _sentence(request, _side_by_side(request))


def trials_in_place(request: TuneRequest, limits: OwnerLimits, *, may_restart: bool = False) -> str:
    """Return the same for a running server itself. Raises: as ``trials_within`` does."""
    workloads = tuple(request.conditions.workloads.values())
    data_sets = tuple({one.data_set.key: one.data_set for one in workloads}.values())
    design = design_in_place(request.conditions.design, limits)
    switch_s = _SWITCH_S + sum(one.size_bytes for one in data_sets) / _COPIED_BYTES_PER_S
    restarts_s = 2 * _RESTART_S * len(data_sets) if may_restart else 0.0  # to a configuration and back
    trial = time_needed(workloads, design, _SERVERS, data_sets, switch_s + restarts_s * 2 / _SERVERS)
    proof = time_needed(workloads, design, 2, (), switch_s + restarts_s / 2)  # none for the original one
    return _sentence(request, _Needed(trial, proof, lambda _: 0.0))


def _side_by_side(request: TuneRequest) -> _Needed:
    workloads = tuple(request.conditions.workloads.values())
    data_sets = {one.data_set.key: one.data_set for one in workloads}
    installation = request.conditions.installation
    to_load = [
        one
        for one in data_sets.values()
        if installation is not None and not is_loaded(workspace(), one, installation)
    ]
    design = request.conditions.design
    trial = time_needed(workloads, replace(design, blocks_per_round=1), _SERVERS, to_load)
    servers = _SERVERS + (2 * MOST_PARTS if request.is_attributed else 0)
    proof = time_needed(workloads, for_arms(servers, design), servers, ())
    return _Needed(trial, proof, partial(_profile_s, request))


def _sentence(request: TuneRequest, needed: _Needed) -> str:
    trial, proof = needed.trial, needed.proof

    def least_s(budget_s: float) -> float:
        """Return the smallest sufficient budget, given the preparations made with this one."""
        before_s = trial.preparation_s + needed.profile_s(budget_s)
        return max(
            (before_s + _LEAST_TRIALS * trial.round_s) / SEARCH_SHARE,
            proof.measuring_s / (1 - SHORTEN_SHARE),
        )

    searching_s = SEARCH_SHARE * request.budget_s - trial.preparation_s
    trials = int((searching_s - needed.profile_s(request.budget_s)) / trial.round_s)
    if request.budget_s < least_s(request.budget_s):
        enough_min = math.ceil(least_s(60 * math.ceil(least_s(request.budget_s) / 60)) / 60)
        raise UsageError(
            f"a budget of {numbers.duration(request.budget_s)} is too small for a search",
            detail=f"a configuration takes about {numbers.duration(round(trial.round_s))}, its proof about "
            f"{numbers.duration(round(proof.measuring_s))}; both are estimates",
            hint=f"--budget {enough_min}m, {'no --attribute, ' if request.is_attributed else ''}"
            "or fewer workloads",
        )
    return (
        f"{numbers.duration(request.budget_s)}: at most {max(trials, _LEAST_TRIALS)} configurations of about "
        f"{numbers.duration(round(trial.round_s))} each, then shortening and the proof"
    )


def _profile_s(request: TuneRequest, budget_s: float) -> float:
    """Return the time for profiles of the baseline; 0 for a resumed search, or with load from other hosts."""
    if request.resume is not None or request.conditions.load_from is not None or budget_s < LEAST_BUDGET_S:
        return 0.0
    return _PROFILE_S * sum(map(is_profiled, request.conditions.workloads.values()))
