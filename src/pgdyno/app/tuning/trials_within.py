"""Check whether a search fits into its budget, before anything is started."""

from __future__ import annotations

import math
from dataclasses import replace

from pgdyno.app.acceleration.profiled_plan import LEAST_BUDGET_S
from pgdyno.app.arenas.datasets import is_loaded
from pgdyno.app.local_machine import workspace
from pgdyno.app.profiling.profile import is_profiled
from pgdyno.app.tuning.front_proof import one_block_a_round
from pgdyno.app.tuning.tune_request import SEARCH_SHARE, SHORTEN_SHARE, TuneRequest
from pgdyno.experiments.decisions.time_needed import time_needed
from pgdyno.experiments.design.parts import MOST_PARTS
from pgdyno.experiments.design.schedule import for_arms
from pgdyno.model import numbers
from pgdyno.model.errors import UsageError

_SERVERS = 3  # default, incumbent and candidate; and of the proof: default, plan and answer
_PROFILE_S = 60.0  # a guess, of each workload; measured: 50 s
_LEAST_TRIALS = 3  # arbitrary: fewer are no search


def trials_within(request: TuneRequest) -> str:
    """Return a sentence on how many configurations the budget holds, if each takes one round.

    Raises: UsageError if it holds too few, or no proof, with the budget that would do.
    """
    workloads = tuple(request.conditions.workloads.values())
    data_sets = {one.data_set.key: one.data_set for one in workloads}
    installation = request.conditions.installation
    to_load = [
        one
        for one in data_sets.values()
        if installation is not None and not is_loaded(workspace(), one, installation)
    ]
    design = request.conditions.design
    beside = _SERVERS - bool(request.aims)  # with several aims there is no incumbent
    trial = time_needed(workloads, replace(design, blocks_per_round=1), beside, to_load)
    servers = _SERVERS + (2 * MOST_PARTS if request.is_attributed else 0)
    proof_design = one_block_a_round(design) if request.aims else for_arms(servers, design)
    proof = time_needed(workloads, proof_design, servers, ())
    before_proof = SEARCH_SHARE if request.aims else SHORTEN_SHARE

    def least_s(budget_s: float) -> float:
        """Return the least budget, if as much is done before the search as with this one."""
        before_s = trial.preparation_s + _profile_s(request, budget_s)
        return max(
            (before_s + _LEAST_TRIALS * trial.round_s) / SEARCH_SHARE,
            proof.measuring_s / (1 - before_proof),
        )

    searching_s = SEARCH_SHARE * request.budget_s - trial.preparation_s
    trials = int((searching_s - _profile_s(request, request.budget_s)) / trial.round_s)
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
        f"{numbers.duration(round(trial.round_s))} each, then "
        f"{'a proof of the front' if request.aims else 'a shorter answer and its proof'}"
    )


def _profile_s(request: TuneRequest, budget_s: float) -> float:
    """Return how long profiles of the baseline take; a search that is gone on with has none."""
    if request.resume is not None or budget_s < LEAST_BUDGET_S:
        return 0.0
    return _PROFILE_S * sum(map(is_profiled, request.conditions.workloads.values()))
