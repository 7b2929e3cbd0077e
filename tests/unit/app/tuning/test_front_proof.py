"""The members of a front, and the experiment that proves them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from tests.golden.synthetic_front import WORKLOAD, tuning
from tests.unit.app.tuning.test_proof import LARGE, Unasked
from tests.unit.levers.engine.test_sharing_memory import GB, MEMORY

from pgdyno.app.arenas.scratch_arena import ScratchArena
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.app.tuning.front_proof import front_proof_of, one_block_a_round, with_members
from pgdyno.app.tuning.searched_space import Searched
from pgdyno.app.tuning.trial_rounds import TrialRounds
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.cli.output import Lines
from pgdyno.levers.engine.sharing_memory import Memory
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import Plan
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState, Tuning
from pgdyno.model.variants.variant import Variant

HOURS = 7200.0
BASE = Variant("default")
BETWEEN = {Aim.THROUGHPUT: math.log(1.33), Aim.WAL: math.log(0.75)}
TRIALS = (
    *tuning().trials,
    Trial(
        7,
        {"shared_buffers": "2048MB", "jit": "off"},
        None,
        (TrialRound(0.0, 0.0, 0.0, by_aim=BETWEEN),) * 3,
        TrialState.WON,
    ),
)
SMALL = Memory(8 * GB, 1, MEMORY.size_of, MEMORY.buffers_of)


def proven(
    left_s: float = HOURS, memory: Memory = LARGE, trials: tuple[Trial, ...] = TRIALS
) -> tuple[Tuning, Study]:
    """Return a search with its members, and their proof."""
    begun = replace(tuning(), members=(), experiment=None, trials=trials)
    searched = Searched(Plan((), (), (), None), begun.space, ("a note",), lambda _: "", memory)
    conditions = Conditions(None, find_workloads((WORKLOAD,), (), 1), Design())
    request = TuneRequest(conditions, BASE, HOURS, aims=begun.aims)
    rounds = TrialRounds(cast("ScratchArena", Unasked()), BASE, begun.space, {}, Design(), Lines())
    found = with_members(request, searched, begun, rounds, left_s)
    return found, front_proof_of(request, searched, found, rounds, left_s)


def test_all_members_stand_beside_the_default_and_the_plan() -> None:
    found, study = proven()
    trials = {one.name: one.trial for one in found.members}
    assert trials["member-1"] == 2  # the best in throughput
    assert trials["member-2"] == 3  # the best in WAL, with fewer changes than trial 4
    assert trials["member-3"] == 7
    assert [one.name for one in study.variants] == ["default", *trials, "plan"]
    assert study.workloads == (WORKLOAD,)
    assert study.notes == ("a note",)
    assert study.question == (
        "Which configurations are best in throughput and WAL per transaction (20261121-090000-tune)?"
    )


def test_the_settings_of_a_member_are_those_of_its_trial() -> None:
    found, study = proven()
    by_name = {one.name: one for one in study.variants}
    assert by_name["member-1"].settings == found.members[0].point == tuning().trials[1].point
    assert by_name["plan"].settings == tuning().space.plan


def test_a_block_a_round_tells_more_than_two() -> None:
    _, study = proven()
    assert (study.design.rounds, study.design.blocks_per_round) == (12, 1)
    assert one_block_a_round(study.design) == study.design


def test_without_time_two_are_proven_and_a_note_says_so() -> None:
    found, study = proven(left_s=0.0)
    assert [one.name for one in study.variants] == ["default", "member-1", "member-2"]
    (note,) = found.notes
    assert note == (
        "left out of the proof, for want of time or memory: 1 of 3 configurations on the front, those that "
        "differ least from the others"
    )


def test_a_search_that_found_nothing_has_no_members() -> None:
    found, study = proven(trials=tuning().trials[5:])
    assert found.members == ()
    assert found.notes == ()
    assert [one.name for one in study.variants] == ["default"]


def test_without_memory_fewer_are_proven() -> None:
    found, study = proven(memory=SMALL)
    assert SMALL.holds(study.variants)
    assert len(found.members) == 2
    assert "plan" not in [one.name for one in study.variants]
