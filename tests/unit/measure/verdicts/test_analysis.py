"""Which blocks verdicts rest on, and which cells are not compared."""

from __future__ import annotations

import pytest

from pgdyno.measure.verdicts.analysis import analyse, log_ratios
from pgdyno.measure.verdicts.failures import MissedRate, is_comparable, missed_rate
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind
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
