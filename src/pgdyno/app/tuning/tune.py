"""Tune: search for the best configuration, make the answer short, prove it on fresh data.

facts      a server of the user's kind on the workloads' data, and what its host has
space      the plan's changes and other values of what levers may set; the profile says which come first
search     default, incumbent and candidate side by side, candidate after candidate
shorten    the winner without what does not pay, against the winner
prove      default, plan and answer, in an experiment of its own: no round of the search is in its figures

With several aims there is no incumbent, and instead of being made shorter an answer is chosen: the members of
the front, all of which are proven.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from pgdyno.app.acceleration.build_advice import builds_to_choose
from pgdyno.app.acceleration.profiled_plan import LEAST_BUDGET_S, baseline_profiles
from pgdyno.app.arenas.opening import open_scratch_arena
from pgdyno.app.awake.awake import AwakeKeeper
from pgdyno.app.local_machine import machine_claimed, online_cpus, workspace
from pgdyno.app.measuring.evidence import document_of
from pgdyno.app.measuring.experiment import Context
from pgdyno.app.measuring.measure import measure
from pgdyno.app.planning.planning import inspect_scratch, plan_for
from pgdyno.app.tuning.asked_aims import require_aims, with_aims
from pgdyno.app.tuning.beginning import again, begun_search, unfinished
from pgdyno.app.tuning.earlier_configurations import earlier_configurations, first_points
from pgdyno.app.tuning.front_proof import front_proof_of, with_members
from pgdyno.app.tuning.proof import proof_of
from pgdyno.app.tuning.searched_space import Searched, searched_space
from pgdyno.app.tuning.trial_rounds import TrialRounds
from pgdyno.app.tuning.tune_request import SEARCH_SHARE, SHORTEN_SHARE, TuneRequest
from pgdyno.host.probing.spinners import Spinners
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import Plan
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.ports import Progress
from pgdyno.model.profiles.profile import TransactionProfile
from pgdyno.model.tuning.space import BUILD
from pgdyno.model.tuning.tuning import Removal, Trial, TrialState, Tuning
from pgdyno.search.additive import least_first
from pgdyno.search.front_race import ForTheFront
from pgdyno.search.noise import noise_of
from pgdyno.search.samplers import load as load_samplers
from pgdyno.search.samplers._contract import Sampler
from pgdyno.search.searching import ForTheTop, search
from pgdyno.search.shortening import remaining, shorten
from pgdyno.search.warm_start import FirstPoints
from pgdyno.search.weighted_aims import WeightedAims
from pgdyno.store.tunings import load_tuning, save_tuning


@dataclass(frozen=True)
class Tuned:
    """The result: the search with its answer, the plan that it began with, and the proof.

    ``experiment`` None: nothing was found that is faster than the default.
    """

    tuning: Tuning
    plan: Plan
    experiment: Experiment | None


class Listener(Protocol):
    """Hears of each trial and removal that has ended."""

    def tried(self, trial: Trial) -> None:
        """Take note of a trial."""
        ...

    def left_out(self, removal: Removal) -> None:
        """Take note of an attempt to make the answer shorter."""
        ...

    def answered(self, tuning: Tuning) -> None:
        """Take note of the answer, before it is proven."""
        ...


def tune(request: TuneRequest, progress: Progress, listener: Listener) -> Tuned:
    """Search, make the answer short, and prove it.

    Raises: UsageError for a search to go on with that is of another space; whatever planning and measuring
    raise.
    """
    began = time.monotonic()
    conditions = request.conditions
    earlier = None if request.resume is None else unfinished(load_tuning(_directory(), request.resume))
    require_aims(request, earlier)
    begin_with = earlier_configurations(request)
    subject = inspect_scratch(request.base, conditions, request.plan.figures, progress)
    plan_request = replace(request.plan, builds=builds_to_choose(conditions))
    planned = plan_for(subject, request.base, conditions, plan_request)
    data_bytes = max(one.data_set.size_bytes for one in conditions.workloads.values())
    profiles, notes = _profiles(request, progress)
    searched = searched_space(planned, request.base, plan_request.layers, data_bytes, profiles)
    searched = replace(searched, notes=(*searched.notes, *notes))
    if not searched.space.dimensions:
        raise UsageError(
            "there is nothing to search",
            detail=f"in these layers nothing can differ between servers: {', '.join(plan_request.layers)}",
            hint="search more of them: --layers all",
        )
    if earlier is None:
        tuning = begun_search(request, searched.space, searched.notes)
    else:
        tuning = again(earlier, request, searched.notes)
    searched = replace(searched, space=tuning.space)  # less memory may be free now than when it began
    first = first_points(tuning.space, begin_with, subject.server)
    searched = replace(searched, first=tuple(one.point for one in first))
    tuning = replace(tuning, notes=(*tuning.notes, *(one.note for one in first)))
    save_tuning(_directory(), tuning)
    progress.step(f"search {tuning.id}, which --resume goes on with if it is interrupted")
    with _rounds(request, searched, progress) as of_one_aim:
        rounds = with_aims(of_one_aim, tuning.aims, planned)
        tuner = _Tuner(request, searched, rounds, listener, began)
        tuning = tuner.concluded(tuner.searched(tuning))
        proof = tuner.proof(tuning)
        tuning = replace(tuning, notes=(*tuning.notes, *_disturbance(rounds.disturbed)))
        save_tuning(_directory(), tuning)
    if tuning.answer or tuning.members:
        listener.answered(tuning)  # before its proof, which can be interrupted
    else:
        return Tuned(tuning, searched.plan, None)
    left_s = max(0.0, request.budget_s - (time.monotonic() - began))
    context = Context(document_of(subject.host), document_of(subject.server))
    proving = replace(conditions, budget_s=left_s, accepts_builds=True, is_resumable=False)
    experiment = measure(proof, proving, progress, context)
    tuning = replace(tuning, experiment=experiment.id)
    save_tuning(_directory(), tuning)
    return Tuned(tuning, searched.plan, experiment)


def _profiles(
    request: TuneRequest, progress: Progress
) -> tuple[tuple[TransactionProfile, ...], tuple[str, ...]]:
    """Return profiles of the baseline, unless a search is resumed: its space has their figures already."""
    if request.resume is not None or request.budget_s < LEAST_BUDGET_S:
        return (), ()
    return baseline_profiles(request.base, request.conditions, progress)


@dataclass(frozen=True)
class _Tuner:
    request: TuneRequest
    searched_space: Searched
    rounds: TrialRounds
    listener: Listener
    began: float

    def searched(self, tuning: Tuning) -> Tuning:
        """Return the search with more trials, until its time is over; one round is made in any case."""
        sampler = _sampler(tuning)
        if first := self.searched_space.first:
            sampler = FirstPoints(sampler, [one for one in (tuning.space.plan, *first) if one])

        def keep(trial: Trial) -> None:
            save_tuning(_directory(), replace(tuning, trials=(*tuning.trials, trial)))

        if tuning.trials and self._is_enough(tuning):
            return tuning
        trials = search(
            sampler,
            self.rounds.trial,
            keep,
            self.searched_space.why_not,
            tuning.trials,
            lambda: self._is_over(SEARCH_SHARE),
            race=ForTheFront(tuning.aims) if tuning.aims else ForTheTop(),
        )
        for trial in trials:
            tuning = replace(tuning, trials=(*tuning.trials, trial))
            self.listener.tried(trial)
            if self._is_enough(tuning):
                break
        return tuning

    def concluded(self, tuning: Tuning) -> Tuning:
        """Return the search with its answer, or with the members of its front."""
        if not tuning.aims:
            return self.shortened(tuning)
        return with_members(self.request, self.searched_space, tuning, self.rounds, self._left_s)

    def proof(self, tuning: Tuning) -> Study:
        """Return the experiment that proves the answer, or all members."""
        if not tuning.aims:
            return proof_of(self.request, self.searched_space, tuning, self.rounds)
        return front_proof_of(self.request, self.searched_space, tuning, self.rounds, self._left_s)

    def shortened(self, tuning: Tuning) -> Tuning:
        """Return the search with its answer: the winner without changes that do not pay."""
        winner = tuning.winner
        if winner is None:
            return tuning
        order = least_first(tuning.space, tuning.trials, winner.point)
        tuning = replace(tuning, removals=(), answer=winner.point)
        noise, why_not = noise_of(tuning.trials), self.searched_space.why_not
        removals = shorten(
            winner.point, order, self.rounds.pair, noise, why_not, lambda: self._is_over(SHORTEN_SHARE)
        )
        for removal in removals:
            tuning = replace(tuning, removals=(*tuning.removals, removal))
            tuning = replace(tuning, answer=remaining(winner.point, tuning.removals))
            save_tuning(_directory(), tuning)
            self.listener.left_out(removal)
        return replace(tuning, answer=self.rounds.settled(tuning.answer)) if tuning.answer else tuning

    def _is_enough(self, tuning: Tuning) -> bool:
        measured = sum(one.state is not TrialState.REFUSED for one in tuning.trials)
        wanted = self.request.most_trials
        return self._is_over(SEARCH_SHARE) or (wanted is not None and measured >= wanted)

    @property
    def _left_s(self) -> float:
        return self.request.budget_s - (time.monotonic() - self.began)

    def _is_over(self, share: float) -> bool:
        return time.monotonic() - self.began > share * self.request.budget_s


def _sampler(tuning: Tuning) -> Sampler:
    """Return the sampler of a search, for one aim or for several."""
    make = partial(load_samplers()[tuning.sampler].make, tuning.space)
    if not tuning.aims:
        return make(tuning.seed)
    return WeightedAims(make, tuning.aims, np.random.default_rng(tuning.seed))


def _directory() -> Path:
    return workspace().experiments()


def _disturbance(count: int) -> tuple[str, ...]:
    """Say how many rounds were disturbed; nothing if none was."""
    if not count:
        return ()
    rounds = "1 round" if count == 1 else f"{count} rounds"
    return (f"taken as they are, though an experiment would not count them: {rounds} of the search",)


@contextmanager
def _rounds(request: TuneRequest, searched: Searched, progress: Progress) -> Iterator[TrialRounds]:
    """Provide rounds on scratch servers, with idle CPUs kept awake if they can be."""
    conditions, base = request.conditions, request.base
    builds = [value for one in searched.space.dimensions if one.key == BUILD for value in one.values]
    variants = (base, *(replace(base, name=name, server=name) for name in builds))
    plan = replace(base, name=PLAN, settings={**base.settings, **searched.plan.values})
    design = replace(conditions.design, blocks_per_round=1)
    if not all(one.is_read_only for one in conditions.workloads.values()):
        design = design.with_writing()
    with (
        machine_claimed(is_wanted=not conditions.as_booted or bool(plan.files)),
        open_scratch_arena(
            conditions.installation, variants, progress, is_isolated=design.is_isolated
        ) as arena,
    ):
        progress.step("measuring how long a wake-up takes")
        keeper = AwakeKeeper(arena.host_state, Spinners(arena.host_state.tree, online_cpus()))
        kept = keeper.find((base, plan), conditions.as_booted)
        awake = replace(arena, host_state=replace(arena.host_state, always=kept.files), spin=kept.spin)
        for workload in conditions.workloads.values():
            for variant in variants:
                arena.load(variant, workload.data_set)
        yield TrialRounds(awake, base, searched.space, conditions.workloads, design, progress)
