"""The experiment that proves the answer of a search: beside the default and the plan, and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.accelerate.arms import note_on_buffers
from pgdyno.measure.design.parts import notes_on_parts, parts_of, taken_apart
from pgdyno.measure.design.schedule import for_arms
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import TUNED, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.lever_keys import lever_by_key, with_pages_joined
from pgdyno.plan.engine.sharing import side_by_side
from pgdyno.plan.engine.sharing_memory import with_smaller_buffers
from pgdyno.plan.levers import load as load_levers
from pgdyno.tune.searched_space import Searched
from pgdyno.tune.trial_rounds import TrialRounds
from pgdyno.tune.tune_request import NAME, TuneRequest


def proof_of(request: TuneRequest, searched: Searched, tuning: Tuning, rounds: TrialRounds) -> Study:
    """Return the experiment; with ``is_attributed`` it also measures every part of the answer."""
    answer = rounds.variant(TUNED, tuning.answer)
    plan = _plan_that_ran(searched, tuning)
    variants = [request.base, *([] if plan is None else [rounds.variant(PLAN, plan)]), answer]
    notes = searched.notes
    if request.is_attributed:
        variants, smaller = _taken_apart(variants, answer, tuning.answer, searched)
        notes = (*notes, *smaller)
    return Study(
        name=NAME,
        question=f"Is PostgreSQL faster with the configuration that was searched ({tuning.id})?",
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
    """Return the variants with two more for every part of the answer, all small enough to stand together."""
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
