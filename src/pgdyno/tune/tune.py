"""Tune: search for the best configuration, shorten the answer, prove it on fresh data.

facts      a server with the user's configuration on the workloads' data, and the resources of its host
space      the plan's changes and other values that levers may set, ordered by the profile
search     default, incumbent and candidate side by side, one candidate at a time
shorten    the winner without changes that do not pay, against the winner
prove      default, plan and answer, in a separate experiment: its figures contain no round of the search
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pgdyno.accelerate.arms import note_on_buffers
from pgdyno.accelerate.planning import builds_to_choose, inspect_scratch, plan_for
from pgdyno.accelerate.profiled_plan import LEAST_BUDGET_S, baseline_profiles
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.opening import kept_awake, open_scratch_arena
from pgdyno.measure.design.parts import notes_on_parts, parts_of, taken_apart
from pgdyno.measure.design.schedule import for_arms
from pgdyno.measure.evidence import document_of
from pgdyno.measure.measure import measure
from pgdyno.measure.records.new_experiment import Context
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import PLAN
from pgdyno.model.tuning.tuning import BUILD, TUNED, Point, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.search_space import lever_by_key, with_pages_joined
from pgdyno.plan.engine.sharing import side_by_side, with_smaller_buffers
from pgdyno.plan.levers import load as load_levers
from pgdyno.postgres.process.local_machine import machine_claimed
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.earlier_configurations import earlier_configurations, warm_start
from pgdyno.tune.searched_space import Searched, searched_space
from pgdyno.tune.trial_rounds import TrialRounds
from pgdyno.tune.tune_request import NAME, TuneRequest, again, begun_search, earlier_search
from pgdyno.tune.tuner import Listener, Tuned, Tuner, disturbance_notes, searches


def tune(request: TuneRequest, progress: Progress, listener: Listener) -> Tuned:
    """Search, shorten the answer, and prove it.

    Raises: UsageError if a search to resume has another subject; all errors of planning and measuring.
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
            "nothing to search",
            detail=f"servers cannot differ in any value of these layers: {', '.join(plan_request.layers)}",
            hint="search more layers: --layers all",
        )
    if earlier is None:
        tuning = begun_search(request, searched.space, searched.notes)
    else:
        tuning = again(earlier, request, searched.notes)
    searched = replace(searched, space=tuning.space)  # less memory may be free than at its beginning
    begin = warm_start(tuning.space, begin_with, subject.server, progress)
    searched = replace(searched, first=begin.points)
    tuning = replace(tuning, notes=(*tuning.notes, *begin.notes))
    save_tuning(searches(), tuning)
    progress.step(f"search {tuning.id}, which can be continued with --resume if interrupted")
    with _rounds(request, searched, progress) as rounds:
        tuner = Tuner(request, searched, rounds, listener, began)
        tuning = tuner.shortened(tuner.searched(tuning))
        proof = proof_of(request, searched, tuning, rounds)
        notes = (*tuning.notes, *rounds.notes, *disturbance_notes(rounds.disturbed))
        tuning = replace(tuning, notes=notes)
        save_tuning(searches(), tuning)
    if tuning.answer:
        listener.answered(tuning)  # before its proof, which may be interrupted
    else:
        return Tuned(tuning, searched.plan, None)
    context = Context(document_of(subject.host), document_of(subject.server))
    # Its likeness is shown with the result; a refusal would come after the search.
    proving = replace(
        conditions,
        budget_s=max(0.0, tuner.left_s),
        accepts_builds=True,
        accepts_unlike=True,
        is_resumable=False,
    )
    experiment = measure(proof, proving, progress, context)
    tuning = replace(tuning, experiment=experiment.id)
    save_tuning(searches(), tuning)
    return Tuned(tuning, searched.plan, experiment)


def _profiles(
    request: TuneRequest, progress: Progress
) -> tuple[tuple[TransactionProfile, ...], tuple[str, ...]]:
    """Return profiles of the baseline; none for a resumed search, as its space has their figures already."""
    if request.resume is not None or request.budget_s < LEAST_BUDGET_S:
        return (), ()
    return baseline_profiles(request.base, request.conditions, progress)


@contextmanager
def _rounds(request: TuneRequest, searched: Searched, progress: Progress) -> Iterator[TrialRounds]:
    """Provide rounds on scratch servers, with CPUs kept awake if possible."""
    conditions, base = request.conditions, request.base
    builds = [value for one in searched.space.dimensions if one.key == BUILD for value in one.values]
    variants = (base, *(replace(base, name=name, server=name) for name in builds))
    plan = replace(base, name=PLAN, settings={**base.settings, **searched.plan.values})
    design = replace(conditions.design, blocks_per_round=1)
    requested = Study(NAME, "", (base,), tuple(conditions.workloads), design)
    with (
        machine_claimed(is_wanted=not conditions.as_booted or bool(plan.files)),
        open_scratch_arena(
            conditions.installation, variants, progress, is_isolated=design.is_isolated
        ) as opened,
    ):
        placed = conditions.placed(opened, requested, progress)
        arena, study = placed.arena, placed.study
        awake, _ = kept_awake(arena, lambda keeper: keeper.find((base, plan), conditions.as_booted), progress)
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
            after_loss=placed.after_loss,
            notes=[*study.notes],
        )


def proof_of(request: TuneRequest, searched: Searched, tuning: Tuning, rounds: TrialRounds) -> Study:
    """Return the study of the proof; with ``is_attributed`` it also measures every part of the answer."""
    answer = rounds.variant(TUNED, tuning.answer)
    plan = _plan_that_ran(searched, tuning)
    variants = [request.base, *([] if plan is None else [rounds.variant(PLAN, plan)]), answer]
    notes = searched.notes
    if request.is_attributed:
        variants, smaller = _taken_apart(variants, answer, tuning.answer, searched)
        notes = (*notes, *smaller)
    return Study(
        name=NAME,
        question=f"Is PostgreSQL faster with the configuration found by the search ({tuning.id})?",
        variants=side_by_side(variants).variants,
        workloads=tuning.workloads,
        design=for_arms(len(variants), request.conditions.design),
        notes=notes,
    )


def _plan_that_ran(searched: Searched, tuning: Tuning) -> Point | None:
    """Return the plan's point; None if it is the answer, or did not run."""
    space = tuning.space
    ran = [one for one in tuning.trials if one.point == space.plan and not one.has_failed]
    is_another = space.whole(space.plan) != tuning.answer
    return space.plan if ran and is_another and not searched.why_not(space.plan) else None


def _taken_apart(
    variants: Sequence[Variant], answer: Variant, point: Point, searched: Searched
) -> tuple[list[Variant], tuple[str, ...]]:
    """Return the variants with two more for every part of the answer, reduced to fit into memory together."""
    base = variants[0]
    levers = lever_by_key(searched.plan, load_levers())
    worth = {levers.get(one.key, one.key): one.worth for one in searched.space.dimensions if one.worth}
    parts = parts_of(with_pages_joined({key: levers.get(key, key) for key in point}), worth)
    notes = notes_on_parts(parts, worth)
    if len(parts) < 2:
        return [*variants], notes
    wanted = [*variants, *taken_apart(base, answer, parts)]
    fitting = with_smaller_buffers(wanted, answer, searched.memory)
    had = fitting[wanted.index(answer)]
    return [*fitting], (*notes, *note_on_buffers(answer, had, len(wanted), searched.memory))
