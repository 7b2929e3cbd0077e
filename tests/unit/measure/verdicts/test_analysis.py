"""Which blocks verdicts rest on, and which cells are not compared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.measure.design.schedule import seats
from pgdyno.measure.verdicts.analysis import analyse, log_ratios, seat_effects, widening
from pgdyno.measure.verdicts.failures import MissedRate, is_comparable, missed_rate
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Stopping
from pgdyno.model.experiments.verdict import Decision, Verdict

NAMES = ("a", "b")


def block(round_: int, shares: tuple[float, float], void: str | None = None) -> Block:
    """Return a step in which both arms do the same, and reach these shares of their background rate."""
    arms = tuple(
        ArmBlock(name, 100, 1.0, {"throughput_tps": 100.0 + round_, "background_rate_share": share})
        for name, share in zip(NAMES, shares, strict=True)
    )
    return Block("qr100", round_, 0, 0, arms, void)


def throughput_verdict(blocks: list[Block]) -> tuple[Decision, str, float | None]:
    verdicts = analyse(blocks, workloads=["qr100"], variants=NAMES, baseline="a", design=Design())
    (found,) = (verdict for verdict in verdicts if verdict.metric == "throughput_tps")
    return found.decision, found.reason, found.effect


def test_a_cell_that_missed_its_background_rate_is_not_compared_and_says_so() -> None:
    decision, reason, effect = throughput_verdict([block(r, (0.99, 0.90)) for r in range(6)])
    assert (decision, effect) == (Decision.INCONCLUSIVE, None)
    assert (
        reason
        == "b missed the background rate in 6 of 6 passes: 90\xa0% of it at worst (95\xa0% is required)"
    )


def test_a_baseline_that_missed_it_leaves_nothing_to_compare_with() -> None:
    _, reason, _ = throughput_verdict([block(r, (0.80, 0.90)) for r in range(6)])
    assert reason == (
        "b missed the background rate in 6 of 6 passes: 90\xa0% of it at worst; "
        "a missed the background rate in 6 of 6 passes: 80\xa0% of it at worst (95\xa0% is required)"
    )


def test_a_cell_that_reached_nothing_of_it_has_missed_it() -> None:
    _, reason, effect = throughput_verdict([block(r, (0.99, 0.0)) for r in range(6)])
    assert effect is None
    assert (
        reason == "b missed the background rate in 6 of 6 passes: 0\xa0% of it at worst (95\xa0% is required)"
    )


def test_a_cell_that_kept_its_rate_is_compared() -> None:
    _, _, effect = throughput_verdict([block(r, (0.96, 0.97)) for r in range(6)])
    assert effect == pytest.approx(1.0)


def test_one_pass_below_the_rate_is_enough_whatever_the_mean_is() -> None:
    shares = (1.0, 1.0, 0.76, 1.0, 1.0)  # on average 0.952
    decision, reason, effect = throughput_verdict([block(r, (0.99, share)) for r, share in enumerate(shares)])
    assert (decision, effect) == (Decision.INCONCLUSIVE, None)
    assert (
        reason
        == "b missed the background rate in 1 of 5 passes: 76\xa0% of it at worst (95\xa0% is required)"
    )


def test_void_blocks_are_no_passes() -> None:
    blocks = [block(0, (1.0, 0.92)), block(1, (1.0, 0.99)), block(2, (1.0, 0.1), void="stolen")]
    assert missed_rate(blocks, "qr100", "b") == MissedRate(passes=1, of_passes=2, lowest=0.92)
    assert missed_rate(blocks[1:], "qr100", "b") is None


def test_a_void_trial_is_left_out_of_its_own_arms_comparison_alone() -> None:
    arms = tuple(
        ArmBlock(name, 100, 1.0, {"throughput_tps": 100.0}, void="stolen" if name == "b" else None)
        for name in ("a", "b", "c")
    )
    block_of_three = Block("w", 0, 0, 0, arms)
    assert log_ratios([block_of_three], "w", "throughput_tps", "b", "a") == {}
    assert log_ratios([block_of_three], "w", "throughput_tps", "c", "a") == {0: [0.0]}


def test_arms_are_comparable_if_both_kept_their_rate() -> None:
    blocks = [block(0, (1.0, 0.92))]
    assert not is_comparable(blocks, "qr100", "b", "a")
    assert is_comparable([block(0, (1.0, 0.95))], "qr100", "b", "a")
    assert is_comparable(blocks, "l.i0", "b", "a")  # which has none


def test_a_workload_without_a_background_rate_cannot_miss_it() -> None:
    plain = Block("w", 0, 0, 0, (ArmBlock("a", 1, 1.0, {"throughput_tps": 1.0}),))
    assert missed_rate([plain], "w", "a") is None


def test_verdicts_and_detectable_changes_contain_the_bias_of_the_design() -> None:
    # Rounds agree to 0.02 %: without a bias +0.5 % is better; with one of 0.5 % a change of 1.4 % is found
    # four times in five (2.8 standard errors: 1.96 + 0.84).
    blocks = [
        Block(
            "w",
            r,
            0,
            0,
            (
                ArmBlock("a", 100, 1.0, {"throughput_tps": 100.0}),
                ArmBlock("b", 100, 1.0, {"throughput_tps": 100.5 + 0.02 * (-1) ** r}),
            ),
        )
        for r in range(20)
    ]

    def verdict(design: Design) -> Verdict:
        (found,) = analyse(blocks, workloads=["w"], variants=NAMES, baseline="a", design=design)
        return found

    known, usual = verdict(Design()), verdict(Design().with_bias())
    assert known.decision is Decision.BETTER
    assert usual.decision is Decision.EQUIVALENT
    assert usual.mde == pytest.approx(2.80 * 0.005, rel=0.02)
    assert known.mde is not None
    assert known.mde < 0.001
    trials = verdict(Design(kind=DesignKind.ALTERNATING).with_bias())
    assert trials.interval == known.interval


SEAT_EFFECTS_NAMES = ("a", "b", "c", "d", "e", "f")
SEATS = (-0.05, -0.05, -0.01, 0.04, 0.04, 0.03)  # measured, on a virtual machine with two CPUs
DESIGN = Design(blocks_per_round=1)


def blocks(
    random: np.random.Generator, rounds: int, effects: tuple[float, ...] = SEATS, noise: float = 0.02
) -> list[Block]:
    """Arm b is 5 % faster than the others."""
    found = []
    for round_ in range(rounds):
        taken, drift = seats(len(effects), round_), float(random.normal(0, 0.1))
        logs = [
            drift
            + effects[taken[arm]]
            + 0.05 * (SEAT_EFFECTS_NAMES[arm] == "b")
            + float(random.normal(0, noise))
            for arm in range(len(effects))
        ]
        arms = tuple(
            ArmBlock(name, 100, 1.0, {"throughput_tps": 1000 * math.exp(log)})
            for name, log in zip(SEAT_EFFECTS_NAMES, logs, strict=False)
        )
        found.append(Block("select", round_, 0, 0, arms))
    return found


def verdict(measured: list[Block], variant: str = "b", design: Design = DESIGN, arms: int = 6) -> Verdict:
    names = SEAT_EFFECTS_NAMES[:arms]
    verdicts = analyse(measured, workloads=["select"], variants=names, baseline="a", design=design)
    return next(one for one in verdicts if one.variant == variant and one.metric == "throughput_tps")


def test_the_effects_of_seats_are_found() -> None:
    measured = blocks(np.random.default_rng(1), 12, noise=0.001)
    found = seat_effects(measured, "select", "throughput_tps", SEAT_EFFECTS_NAMES, DESIGN)
    assert found is not None
    assert found.effects == pytest.approx(SEATS, abs=0.003)
    assert found.spread == pytest.approx(0.094, abs=0.01)


def test_intervals_are_half_as_wide_as_with_seats_in_them_and_cover_what_they_say() -> None:
    random = np.random.default_rng(2)
    covered, widths = 0, []
    for _ in range(300):
        interval = verdict(blocks(random, 6)).interval
        assert interval is not None
        covered += interval.low <= math.exp(0.05) <= interval.high
        widths.append(interval.high - interval.low)
    assert covered / 300 > 0.93
    assert np.median(widths) < 0.08  # with the seats in it: 0.14


def test_where_seats_do_nothing_intervals_cover_as_well() -> None:
    random = np.random.default_rng(3)
    intervals = [verdict(blocks(random, 6, (0.0,) * 6)).interval for _ in range(300)]
    covered = [one is not None and one.low <= math.exp(0.05) <= one.high for one in intervals]
    assert sum(covered) / 300 > 0.93


@pytest.mark.parametrize(
    "design",
    [replace(DESIGN, kind=DesignKind.ALTERNATING), replace(DESIGN, stopping=Stopping.DECIDED)],
    ids=["trials", "looked-at"],
)
def test_trials_and_looks_are_left_as_they_are(design: Design) -> None:
    measured = blocks(np.random.default_rng(4), 8)
    assert seat_effects(measured, "select", "throughput_tps", SEAT_EFFECTS_NAMES, design) is None


def test_fewer_rounds_than_arms_cannot_tell_seats() -> None:
    measured = blocks(np.random.default_rng(5), 5)
    assert seat_effects(measured, "select", "throughput_tps", SEAT_EFFECTS_NAMES, DESIGN) is None


def test_three_arms_are_left_as_they_are() -> None:
    measured = blocks(np.random.default_rng(6), 9, SEATS[:3])
    assert seat_effects(measured, "select", "throughput_tps", SEAT_EFFECTS_NAMES[:3], DESIGN) is None


def test_rounds_in_which_an_arm_does_not_count_tell_nothing_of_seats() -> None:
    measured = blocks(np.random.default_rng(7), 6)
    void = [replace(measured[0], void="disturbed"), *measured[1:]]
    assert seat_effects(void, "select", "throughput_tps", SEAT_EFFECTS_NAMES, DESIGN) is None


def test_rounds_that_leave_arms_on_some_seats_cannot_tell_them_apart() -> None:
    """With every second round void, an arm has only ever had half of the seats."""
    measured = blocks(np.random.default_rng(8), 16, SEATS[:4])
    even = [replace(one, void="disturbed") if one.round % 2 else one for one in measured]
    assert seat_effects(measured, "select", "throughput_tps", SEAT_EFFECTS_NAMES[:4], DESIGN) is not None
    assert seat_effects(even, "select", "throughput_tps", SEAT_EFFECTS_NAMES[:4], DESIGN) is None


def test_a_degree_of_freedom_is_paid_for() -> None:
    """By hand, 6 rounds: sqrt(5/4) · 4.604 / 4.032, of Student's t at 99.5 %."""
    assert widening(6) == pytest.approx(1.2766, abs=0.001)
