"""A winner that goes over a limit later is none, and the budget of a search in place."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.attached_arena import AttachedArena
from pgdyno.measure.arenas.attached_server import AttachedBase
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import (
    Dimension,
    OwnerLimits,
    Point,
    Space,
    Trial,
    TrialRound,
    TrialState,
    Tuning,
)
from pgdyno.model.variants.variant import Variant
from pgdyno.tune.budget import RoundsInPlace, as_valid, design_in_place
from pgdyno.tune.tune_in_place import without_winner


def trial(number: int, point: Point, state: TrialState) -> Trial:
    return Trial(number, point, None, (TrialRound(0.1, 0.1, 0.0),), state)


def test_the_one_that_won_before_is_the_winner_again() -> None:
    first = trial(1, {"jit": "off"}, TrialState.WON)
    second = trial(2, {"work_mem": "64MB"}, TrialState.WON)
    third = trial(3, {"work_mem": "16MB"}, TrialState.LOST)
    found = without_winner(Tuning("t", "guided", 1, ("w",), "s", Space(()), (first, second, third)), "31 ms")
    assert found.winner == first
    assert found.trials[1].state is TrialState.OVER_LIMIT
    assert found.trials[1].reason == "31 ms"
    assert found.trials[1].gain is None
    assert without_winner(found, "32 ms").winner is None


def test_trials_are_whole_and_with_limits_in_turns_of_a_second() -> None:
    plain = design_in_place(Design(), OwnerLimits())
    assert plain.kind is DesignKind.ALTERNATING
    assert plain.slice_s == plain.block_s == 10.0
    assert not plain.is_isolated
    limited = design_in_place(Design(), OwnerLimits(latency_ms=20.0))
    assert (limited.block_s, limited.slice_s, limited.head_s) == (10.0, 1.0, 0.05)
    assert design_in_place(Design(block_s=0.5), OwnerLimits(memory_bytes=1)).slice_s == 0.5


def test_an_answer_that_went_over_a_limit_is_not_tried_again() -> None:
    dimension = Dimension(
        "commit_delay", Layer.APPLICATION, ("10", "100"), "0", brings={"commit_siblings": "1"}
    )
    rounds = RoundsInPlace(
        cast("AttachedArena", AttachedBase()),
        Variant("default"),
        Space((dimension,), {"max_wal_size": "4GB"}),
        {},
        Design(),
        Lines(),
        restore=lambda: None,
    )
    rounds.record_over_limit({"commit_delay": "100", "commit_siblings": "1", "max_wal_size": "4GB"}, "31 ms")
    why_not = rounds.why_not(lambda _: "no")
    assert why_not({"commit_delay": "100"}) == "31 ms"
    assert why_not({"commit_delay": "10"}) == "no"


def test_rounds_that_the_owners_work_disturbs_are_taken_and_counted() -> None:
    quiet = Block("w", 0, 0, 1, (ArmBlock("default", 1, 1.0, {}),))
    busy = replace(quiet, void="others used 40 % of the CPUs")
    of_one = replace(quiet, arms=(replace(quiet.arms[0], void="its client was saturated"),))
    assert as_valid([quiet]) == ([quiet], False)
    assert as_valid([quiet, busy]) == ([quiet, quiet], True)
    assert as_valid([of_one]) == ([quiet], True)
