"""Rounds of a search on a running server, in whole trials; whether a search fits into its budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pgdyno.accelerate.profiled_plan import LEAST_BUDGET_S
from pgdyno.base import numbers
from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.measure.arenas.datasets import is_loaded
from pgdyno.measure.decisions.stopping import TimeNeeded, time_needed
from pgdyno.measure.design.parts import MOST_PARTS
from pgdyno.measure.design.schedule import for_arms, in_trials
from pgdyno.model.experiments.experiment import Block, Design
from pgdyno.model.tuning.tuning import OverLimitError, OwnerLimits, Point
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.profile.reading.profile import is_profiled
from pgdyno.tune.search.searching import CandidateOverLimitError, WhyNot
from pgdyno.tune.trial_rounds import CANDIDATE, INCUMBENT, Counted, TrialRounds
from pgdyno.tune.tune_request import SEARCH_SHARE, SHORTEN_SHARE, TuneRequest, earlier_search

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


_CHECK_S = 1.0  # interval of checking the limits


class IncumbentOverLimitError(Exception):
    """The best configuration so far exceeded a limit: it is no longer the best."""


def design_in_place(design: Design, limits: OwnerLimits) -> Design:
    """Return the design with whole trials; with limits, in short turns, each followed by a check of them."""
    trials = replace(in_trials(design), is_isolated=False)
    if not limits.is_any:
        return trials
    turn_s = min(_CHECK_S, trials.block_s)
    return replace(trials, slice_s=turn_s, head_s=turn_s / 20)


def as_valid(blocks: Sequence[Block]) -> tuple[list[Block], bool]:
    """Return all blocks as valid, and whether any of them was disturbed.

    A server's own work disturbs every round: repeating rounds would double the load and the restarts.
    """
    counted = [
        replace(block, void=None, arms=tuple(replace(arm, void=None) for arm in block.arms))
        for block in blocks
    ]
    return counted, any(block.void_reasons for block in blocks)


@dataclass
class RoundsInPlace(TrialRounds):
    """Measures rounds on a running server. ``restore`` restores its values as soon as a limit is exceeded."""

    restore: Callable[[], None] = field(kw_only=True)
    _over_limit: dict[frozenset[tuple[str, str]], str] = field(default_factory=dict, init=False)

    def require_found_within_limits(self) -> None:
        """Refuse a server that exceeds a limit without any change. Raises: RefusedError."""
        try:
            self._round([replace(self.base, name=CANDIDATE)])
        except OverLimitError as error:
            raise RefusedError(
                "the server exceeds a limit in its original configuration, under this load",
                detail=error.reason,
                hint="raise the limit, or choose a lighter workload",
            ) from error

    def why_not(self, otherwise: WhyNot) -> WhyNot:
        """Return a function for the reason not to try a point: it exceeded a limit, or ``otherwise``."""
        return lambda point: self._over_limit.get(self._whole(point), "") or otherwise(point)

    def record_over_limit(self, point: Point, reason: str) -> None:
        """Record a point that exceeded a limit; it may include the kept values already."""
        self._over_limit[self._whole(point)] = reason

    def _whole(self, point: Point) -> frozenset[tuple[str, str]]:
        return frozenset(self.settled(point).items())

    def _blocks(self, variants: Sequence[Variant]) -> list[Block]:
        """Return the blocks of one round. It is not repeated, even if the server's own work disturbed it."""
        blocks, is_disturbed = as_valid(super()._blocks(variants))
        self.disturbed += is_disturbed
        return blocks

    def _compared(self, others: Mapping[str, Variant], candidate: Point) -> Counted:
        try:
            return super()._compared(others, candidate)
        except OverLimitError as error:
            self.restore()
            self.arena.loads.forget("tune")
            if error.variant == INCUMBENT:
                raise IncumbentOverLimitError(error.reason) from error
            self.record_over_limit(candidate, error.reason)
            raise CandidateOverLimitError(error.reason) from error
