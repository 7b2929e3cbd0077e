"""Tune: search for the best configuration, make the answer short, prove it on fresh data.

facts      a server of the user's kind on the workloads' data, and what its host has
space      the plan's changes and other values of what levers may set; the profile says which come first
search     default, incumbent and candidate side by side, candidate after candidate
shorten    the winner without what does not pay, against the winner
prove      default, plan and answer, in an experiment of its own: no round of the search is in its figures
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pgdyno.accelerate.planning import inspect_scratch, plan_for
from pgdyno.accelerate.profiled_plan import LEAST_BUDGET_S, baseline_profiles
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.known_builds import builds_to_choose
from pgdyno.host.probing.spinners import Spinners
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.awake.awake import AwakeKeeper
from pgdyno.measure.evidence import document_of
from pgdyno.measure.load_hosts.load_from_cell import loaded_from_cell
from pgdyno.measure.load_hosts.lost_host import after_loss_of
from pgdyno.measure.measure import measure
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.space import BUILD
from pgdyno.postgres.process.local_machine import machine_claimed, online_cpus
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.beginning import again, begun_search, earlier_search
from pgdyno.tune.earlier_configurations import earlier_configurations, warm_start
from pgdyno.tune.proof import proof_of
from pgdyno.tune.searched_space import Searched, searched_space
from pgdyno.tune.trial_rounds import TrialRounds
from pgdyno.tune.tune_request import NAME, TuneRequest
from pgdyno.tune.tuner import Listener, Tuned, Tuner, disturbance_notes, searches


def tune(request: TuneRequest, progress: Progress, listener: Listener) -> Tuned:
    """Search, make the answer short, and prove it.

    Raises: UsageError for a search to go on with that is of another space; whatever planning and measuring
    raise.
    """
    began = time.monotonic()
    conditions = request.conditions
    earlier = earlier_search(request)
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
    begin = warm_start(tuning.space, begin_with, subject.server, progress)
    searched = replace(searched, first=begin.points)
    tuning = replace(tuning, notes=(*tuning.notes, *begin.notes))
    save_tuning(searches(), tuning)
    progress.step(f"search {tuning.id}, which --resume goes on with if it is interrupted")
    with _rounds(request, searched, progress) as rounds:
        tuner = Tuner(request, searched, rounds, listener, began)
        tuning = tuner.shortened(tuner.searched(tuning))
        proof = proof_of(request, searched, tuning, rounds)
        notes = (*tuning.notes, *rounds.notes, *disturbance_notes(rounds.disturbed))
        tuning = replace(tuning, notes=notes)
        save_tuning(searches(), tuning)
    if tuning.answer:
        listener.answered(tuning)  # before its proof, which can be interrupted
    else:
        return Tuned(tuning, searched.plan, None)
    context = Context(document_of(subject.host), document_of(subject.server))
    proving = replace(conditions, budget_s=max(0.0, tuner.left_s), accepts_builds=True, is_resumable=False)
    experiment = measure(proof, proving, progress, context)
    tuning = replace(tuning, experiment=experiment.id)
    save_tuning(searches(), tuning)
    return Tuned(tuning, searched.plan, experiment)


def _profiles(
    request: TuneRequest, progress: Progress
) -> tuple[tuple[TransactionProfile, ...], tuple[str, ...]]:
    """Return profiles of the baseline, unless a search is resumed: its space has their figures already."""
    if request.resume is not None or request.budget_s < LEAST_BUDGET_S:
        return (), ()
    return baseline_profiles(request.base, request.conditions, progress)


@contextmanager
def _rounds(request: TuneRequest, searched: Searched, progress: Progress) -> Iterator[TrialRounds]:
    """Provide rounds on scratch servers, with idle CPUs kept awake if they can be."""
    conditions, base = request.conditions, request.base
    builds = [value for one in searched.space.dimensions if one.key == BUILD for value in one.values]
    variants = (base, *(replace(base, name=name, server=name) for name in builds))
    plan = replace(base, name=PLAN, settings={**base.settings, **searched.plan.values})
    design = replace(conditions.design, blocks_per_round=1)
    asked = Study(NAME, "", (base,), tuple(conditions.workloads), design)
    with (
        machine_claimed(is_wanted=not conditions.as_booted or bool(plan.files)),
        open_scratch_arena(
            conditions.installation, variants, progress, is_isolated=design.is_isolated
        ) as opened,
    ):
        arena, study = loaded_from_cell(opened, asked, conditions, progress)
        progress.step("measuring how long a wake-up takes")
        keeper = AwakeKeeper(arena.host_state, Spinners(arena.host_state.tree, online_cpus()))
        kept = keeper.find((base, plan), conditions.as_booted)
        awake = replace(arena, host_state=replace(arena.host_state, always=kept.files), spin=kept.spin)
        for workload in conditions.workloads.values():
            for variant in variants:
                arena.load(variant, workload.data_set)
        is_read_only = all(one.is_read_only for one in conditions.workloads.values())
        yield TrialRounds(
            awake,
            base,
            searched.space,
            conditions.workloads,
            study.design if is_read_only else study.design.with_writing(),
            progress,
            after_loss=after_loss_of(conditions, study, arena, progress),
            notes=[*study.notes],
        )
