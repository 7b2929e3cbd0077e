"""Two machines measured apart: the interval is Welch's, over the rounds of each.

Expected figures are from scipy 1.17: ttest_ind(FAST, SLOW, equal_var=False), its p-value and its interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from pgdyno.model.experiments.metric import METRICS
from pgdyno.model.experiments.verdict import Decision, Verdict
from pgdyno.stats.decision import decide_apart
from pgdyno.stats.inference import infer_product
from pgdyno.stats.sample import Sample

FAST = [[0.10], [0.12], [0.11], [0.09], [0.13]]
SLOW = [[-0.30], [0.20], [0.10], [-0.10], [0.35], [-0.25], [0.05], [-0.05]]
DRIFTING = [[7.0 + 0.1 * round_ + (-1) ** round_ * 0.01] for round_ in range(8)]


def judge(
    b: Sequence[Sequence[float]], a: Sequence[Sequence[float]], metric: str = "throughput_tps"
) -> Verdict:
    return decide_apart(
        b,
        a,
        workload="pgbench-select",
        metric=METRICS[metric],
        variant="B",
        baseline="A",
        level=0.95,
        equivalence_margin=0.02,
        power=0.80,
        void_blocks=2,
    )


def test_the_interval_is_that_of_welch_with_unequal_numbers_of_rounds() -> None:
    verdict = judge(FAST, SLOW)
    assert verdict.interval is not None
    assert verdict.effect == pytest.approx(math.exp(0.11))  # 0.11 - 0.0
    assert math.log(verdict.interval.low) == pytest.approx(-0.07440308750349481)
    assert math.log(verdict.interval.high) == pytest.approx(0.29440308750349486)
    assert verdict.p_value == pytest.approx(0.20187866828152204)
    assert (verdict.decision, verdict.variant, verdict.baseline) == (Decision.INCONCLUSIVE, "B", "A")
    assert (verdict.rounds, verdict.blocks, verdict.void_blocks) == (5, 13, 2)


def test_blocks_of_a_round_are_one_observation() -> None:
    """Rounds of three blocks with the same means say no more than rounds of one."""
    of_three = [[blocks[0] - 0.02, blocks[0], blocks[0] + 0.02] for blocks in SLOW]
    assert judge(FAST, of_three).p_value == pytest.approx(0.20187866828152204)


def test_exchanging_the_machines_inverts_the_ratio() -> None:
    forth, back = judge(FAST, SLOW), judge(SLOW, FAST)
    assert forth.interval is not None
    assert back.interval is not None
    assert back.interval.low == pytest.approx(1 / forth.interval.high)
    assert back.interval.high == pytest.approx(1 / forth.interval.low)


def test_what_is_better_is_told_by_the_metric() -> None:
    doubled = [[math.log(2) + blocks[0]] for blocks in FAST]
    assert judge(doubled, FAST).decision is Decision.BETTER
    assert judge(doubled, FAST, "latency_ms_p99").decision is Decision.WORSE
    assert judge(FAST, [[0.111], [0.1095], [0.11], [0.1105], [0.109]]).decision is Decision.EQUIVALENT


def test_a_machine_that_drifted_or_has_few_rounds_is_named() -> None:
    drifted = judge(FAST, DRIFTING)
    assert drifted.is_withheld
    assert drifted.interval is not None
    assert drifted.reason == (
        "A: withheld: it drifted from −25.9\xa0% to +35.0\xa0% against its mean while it was measured (p "
        "= 2e-09), so its average is not meaningful"
    )
    assert judge(FAST[:4], SLOW).reason == (
        "B: withheld: 4 rounds of started servers are too few to rule out chance, at least 5 are needed"
    )
    nothing = judge(FAST, [])
    assert (nothing.effect, nothing.interval, nothing.is_withheld) == (None, None, True)
    assert nothing.reason == "A: only 0 of at least 4 blocks were measured"


@pytest.mark.parametrize(
    ("rounds_a", "rounds_b", "noise_a", "noise_b"),
    [
        (6, 6, (0.02, 0.02), (0.02, 0.02)),
        (5, 12, (0.01, 0.03), (0.10, 0.02)),
        (20, 5, (0.05, 0.0), (0.01, 0.0)),
    ],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(
    rounds_a: int, rounds_b: int, noise_a: tuple[float, float], noise_b: tuple[float, float]
) -> None:
    """10 000 pairs of machines of which B is 1.3 times as fast, with biases of rounds and noise of blocks."""
    random = np.random.default_rng([20261122, rounds_a, rounds_b])

    def machine(rounds: int, noise: tuple[float, float], mean: float) -> Sample:
        biases = noise[0] * random.standard_normal((10_000, rounds))
        blocks = np.repeat(biases, 2, axis=-1) + noise[1] * random.standard_normal((10_000, 2 * rounds))
        return Sample(mean + blocks, np.full(rounds, 2, dtype=np.int64))

    truth = math.log(1.3)
    one, other = machine(rounds_b, noise_b, 9.0 + truth), machine(rounds_a, noise_a, 9.0)
    inference = infer_product([one, other.inverse], level=0.95, margin=0.02)
    covered = float(np.mean((inference.low <= truth) & (inference.high >= truth)))
    assert 0.945 <= covered <= 0.985  # the widening of independent rounds by chance is on the safe side
