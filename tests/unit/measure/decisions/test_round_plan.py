"""How many rounds an experiment runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.measure.decisions.round_plan import RoundPlan
from pgdyno.model.experiments.experiment import Block, Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant

STUDY = Study("s", "?", (Variant("a"), Variant("b")), ("w",), Design(rounds=6))
ADAPTIVE = Study("s", "?", (Variant("a"),), ("w",), Design(rounds=6), is_adaptive=True)


def blocks(rounds: int, void: int = 0) -> list[Block]:
    """Return a block for each round, the first ``void`` of which do not count."""
    return [Block("w", r, 0, 0, (), "stolen" if r < void else None) for r in range(rounds)]


def after(plan: RoundPlan, rounds: int, *, round_s: float, elapsed_s: float, void: int = 0) -> RoundPlan:
    """Return the plan after more rounds, at whose end ``elapsed_s`` have passed."""
    for number in range(1, rounds + 1):
        passed_s = elapsed_s - (rounds - number) * round_s
        plan = plan.after(round_s, passed_s, blocks(plan.done + 1, void))
    return plan


def test_without_a_budget_the_design_decides() -> None:
    plan = RoundPlan.of(STUDY, None)
    assert (plan.total, plan.left) == (6, 6)
    assert after(plan, 5, round_s=100.0, elapsed_s=500.0).left == 1
    assert after(plan, 6, round_s=100.0, elapsed_s=600.0).left == 0


@pytest.mark.parametrize(("void", "looks"), [(0, [5]), (1, [6])])
def test_the_look_comes_once_after_five_rounds_that_count(void: int, looks: list[int]) -> None:
    plan = RoundPlan.of(STUDY, None)
    found = []
    for done in range(1, 8):
        plan = plan.after(1.0, float(done), blocks(done, void))
        found += [done] if plan.is_look else []
    assert found == looks


def test_stretches_of_the_first_rounds_are_no_reason_to_run_fewer_later_ones() -> None:
    # 15 s of each of the first three rounds are stretches; the others take 10 s: 25 + 25 + 25 + 2 · 10 = 95.
    study = replace(STUDY, design=Design(stretch_s=5.0))
    plan = RoundPlan.of(study, 116.0, stretches_s=15.0).after(25.0, 25.0, blocks(1))
    assert plan.total == 6  # of seven, which fit as well, one would be odd
    for done in (2, 3):
        plan = plan.after(25.0, 25.0 * done, blocks(done))
    for done in (4, 5, 6):
        plan = plan.after(10.0, 75.0 + 10.0 * (done - 3), blocks(done))
    assert plan.total == 6


def test_a_budget_is_filled_after_the_first_round_with_an_even_number() -> None:
    plan = RoundPlan.of(STUDY, 100.0).after(10.0, 15.0, blocks(1))
    assert (plan.done, plan.total) == (1, 8)  # 85 s hold eight more, and of nine one would be odd


def test_later_rounds_do_not_change_what_a_budget_holds() -> None:
    plan = RoundPlan.of(STUDY, 100.0).after(10.0, 15.0, blocks(1))
    assert plan.after(30.0, 45.0, blocks(2)).total == 8


def test_a_budget_that_is_too_small_gives_what_a_verdict_needs() -> None:
    assert RoundPlan.of(STUDY, 10.0).after(10.0, 15.0, blocks(1)).total == 5


def test_what_is_left_of_a_budget_at_the_end_is_filled_too() -> None:
    plan = RoundPlan.of(STUDY, 100.0).after(10.0, 15.0, blocks(1))
    assert after(plan, 7, round_s=7.0, elapsed_s=64.0).total == 10  # 36 s hold three of the longest, 10 s
    assert after(plan, 7, round_s=10.0, elapsed_s=85.0).total == 8  # one more would be odd


def test_a_void_round_is_repeated() -> None:
    plan = after(RoundPlan.of(STUDY, None), 2, round_s=1.0, elapsed_s=2.0, void=1)
    assert (plan.planned, plan.repeats, plan.left) == (6, 1, 5)


def test_within_a_budget_only_what_a_verdict_lacks_is_repeated() -> None:
    plan = RoundPlan.of(STUDY, 100.0).after(10.0, 15.0, blocks(1, void=1))
    assert after(plan, 2, round_s=10.0, elapsed_s=35.0, void=3).repeats == 0  # five of eight still count
    assert after(plan, 3, round_s=10.0, elapsed_s=45.0, void=4).repeats == 1


def test_a_resumed_experiment_has_the_budget_for_itself() -> None:
    plan = RoundPlan.of(STUDY, 100.0, done=3).after(10.0, 15.0, blocks(4))
    assert (plan.done, plan.total) == (4, 12)
    assert plan.left == 8


def test_of_an_adaptive_study_each_round_counts_anew_and_none_is_repeated() -> None:
    plan = RoundPlan.of(ADAPTIVE, 100.0).after(20.0, 25.0, blocks(1, void=1))
    assert (plan.total, plan.repeats) == (5, 0)  # 75 s hold three more, and a verdict needs five
    assert plan.after(5.0, 30.0, blocks(2, void=2)).total == 16  # 70 s hold fourteen more
