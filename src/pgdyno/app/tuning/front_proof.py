"""The members of a search's front, and the experiment that proves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.app.tuning.searched_space import Searched
from pgdyno.app.tuning.trial_rounds import TrialRounds
from pgdyno.app.tuning.tune_request import NAME, TuneRequest
from pgdyno.experiments.decisions.time_needed import time_needed
from pgdyno.levers.engine.sharing import side_by_side
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.tuning import MEMBER, FrontMember, Trial, Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.search.front_race import MOST_MEMBERS, front_of

LEAST_SERVERS = 3  # of a proof: the default, and two to choose between
_MOST_SERVERS = MOST_MEMBERS + 2  # the default and the plan


def one_block_a_round(design: Design) -> Design:
    """Return the design of the proof: as many blocks, each with servers of its own.

    With eight servers a block takes more than half a minute, and rounds tell more than blocks.
    """
    return replace(design, rounds=design.rounds * design.blocks_per_round, blocks_per_round=1)


def with_members(
    request: TuneRequest, searched: Searched, tuning: Tuning, rounds: TrialRounds, left_s: float
) -> Tuning:
    """Return a search with the members of its front: as many as its proof has time and memory for."""
    found = front_of(tuning.trials, tuning.aims)
    most = _most_servers(request, left_s)
    members = _numbered(found[: most - 1], rounds)
    while members and not _fits(request, searched, rounds, members):
        members = members[:-1]
    if not found or len(members) == len(found):
        return replace(tuning, members=members)
    note = (
        f"left out of the proof, for want of time or memory: {len(found) - len(members)} of "
        f"{len(found)} configurations on the front, those that differ least from the others"
    )
    return replace(tuning, members=members, notes=(*tuning.notes, note))


def front_proof_of(
    request: TuneRequest, searched: Searched, tuning: Tuning, rounds: TrialRounds, left_s: float
) -> Study:
    """Return the experiment: the default, every member, and the plan if it ran and there is room for it."""
    variants = [request.base, *_variants(rounds, tuning.members)]
    has_plan = any(one.name == PLAN for one in tuning.offered)
    if has_plan and len(variants) < _most_servers(request, left_s):
        beside = [*variants, rounds.variant(PLAN, tuning.space.plan)]
        variants = beside if searched.memory.holds(beside) else variants
    aims = " and ".join(aim.label for aim in tuning.aims)
    return Study(
        name=NAME,
        question=f"Which configurations are best in {aims} ({tuning.id})?",
        variants=side_by_side(variants).variants,
        workloads=tuning.workloads,
        design=one_block_a_round(request.conditions.design),
        notes=searched.notes,
    )


def _most_servers(request: TuneRequest, left_s: float) -> int:
    """Return how many servers can be measured side by side in this time: three in any case."""
    workloads = tuple(request.conditions.workloads.values())
    design = one_block_a_round(request.conditions.design)
    fitting = (
        count
        for count in range(_MOST_SERVERS, LEAST_SERVERS, -1)
        if time_needed(workloads, design, count, ()).measuring_s <= left_s
    )
    return next(fitting, LEAST_SERVERS)


def _numbered(trials: Sequence[Trial], rounds: TrialRounds) -> tuple[FrontMember, ...]:
    return tuple(
        FrontMember(f"{MEMBER}-{place}", one.number, rounds.settled(one.point))
        for place, one in enumerate(trials, start=1)
    )


def _variants(rounds: TrialRounds, members: Sequence[FrontMember]) -> list[Variant]:
    return [rounds.variant(one.name, one.point) for one in members]


def _fits(
    request: TuneRequest, searched: Searched, rounds: TrialRounds, members: Sequence[FrontMember]
) -> bool:
    return searched.memory.holds([request.base, *_variants(rounds, members)])
