"""What the rule for disturbed windows does to intervals and errors: simulated experiments in turns.

    python -m bench.disturbance [EXPERIMENTS]      2 000 per row by default, two minutes

Two identical variants, 14 rounds of 2 blocks of 6 windows of a second. What is stolen from a window
makes its log-ratio noisier. Compared are: nothing left out; whole blocks above 10 %, until more than 30 % of
them would be lost (decision 11); and windows, then blocks, as ``experiments.disturbance`` judges them
(decision 30). Blocks that are lost are not repeated here. Prints a Markdown table and exits with 1 if more
than 5 % of the experiments call identical variants different.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from bench.noise import ROUND_SD
from bench.simulate import LEVEL, MARGIN, seeded

from pgdyno.measure.blocks.disturbance import audit_windows, left_out, raised
from pgdyno.model.experiments.experiment import VoidThresholds
from pgdyno.model.experiments.slices import Slice
from pgdyno.stats.inference import infer
from pgdyno.stats.nested import missing
from pgdyno.stats.sample import BoolArray, FloatArray, Sample

ROUNDS, BLOCKS, WINDOWS = 14, 2, 6
SHAPE = (ROUNDS, BLOCKS, WINDOWS)
CALM_SD = 0.03  # of a window's log-ratio; a block of six then has 0.012, near BLOCK_SD
SD_PER_STOLEN = 0.6  # how much of that each unit of stolen time adds: arbitrary, less than was recorded
LIMITS = VoidThresholds()
_LOST_AT_MOST = 0.30  # of the blocks, by decision 11

Rule = Callable[[FloatArray], BoolArray]
"""From what was stolen from every window, (rounds, blocks, windows), to which windows count."""


@dataclass(frozen=True)
class Found:
    """Shares of experiments, and the median half-width of their intervals."""

    false: float
    half_width: float
    counted: float  # share of all windows


def calm(random: np.random.Generator) -> FloatArray:
    """Return a machine from which about 1 % is taken."""
    return random.exponential(0.01, SHAPE)


def bursts(random: np.random.Generator) -> FloatArray:
    """Return one on which one second in twelve loses 20 to 80 %."""
    return np.where(
        random.random(SHAPE) < 1 / WINDOWS / BLOCKS, random.uniform(0.2, 0.8, SHAPE), calm(random)
    )


def visit(random: np.random.Generator) -> FloatArray:
    """Return one with a busy neighbour in rounds 5 to 8."""
    is_there = (np.arange(ROUNDS) // 4 == 1)[:, None, None]
    return np.where(is_there, random.uniform(0.2, 0.6, SHAPE), calm(random))


def throughout(random: np.random.Generator) -> FloatArray:
    """Return one that is disturbed from beginning to end."""
    return random.uniform(0.1, 0.5, SHAPE)


def all_count(stolen: FloatArray) -> BoolArray:
    """Leave nothing out."""
    return np.ones(stolen.shape, dtype=np.bool)


def whole_blocks(stolen: FloatArray) -> BoolArray:
    """Leave out blocks above the limit, unless those are too many: decision 11."""
    is_kept = stolen.mean(axis=-1) <= LIMITS.steal_share
    if 1 - is_kept.mean() > _LOST_AT_MOST:
        return all_count(stolen)
    return np.repeat(is_kept[..., None], WINDOWS, axis=-1)


def windows(stolen: FloatArray) -> BoolArray:
    """Leave out windows within a round, then blocks within the experiment: decision 30."""
    counts = all_count(stolen)
    audits = []
    for r in range(ROUNDS):
        blocks = [[Slice(0, 0, 1, (), None, float(share), 0.0) for share in block] for block in stolen[r]]
        for b, (block, out) in enumerate(zip(blocks, left_out(blocks, LIMITS), strict=True)):
            counts[r, b, list(out)] = False
            audits.append(audit_windows(block, out))
    limit = raised(LIMITS, audits).steal_share
    is_kept = np.array([audit["steal_share"] <= limit for audit in audits]).reshape(ROUNDS, BLOCKS, 1)
    return np.asarray(counts & is_kept)


RULES: dict[str, Rule] = {"nothing left out": all_count, "decision 11": whole_blocks, "decision 30": windows}
MACHINES = (calm, bursts, visit, throughout)


def simulate(machine: Callable[[np.random.Generator], FloatArray], rule: Rule, experiments: int) -> Found:
    """Return what a rule does on a kind of machine; every rule sees the same experiments."""
    random = seeded("disturbance", machine.__name__)
    false, widths, counted = 0, [], []
    for _ in range(experiments):
        stolen = machine(random)
        ratios = random.normal(0, CALM_SD + SD_PER_STOLEN * stolen) + random.normal(
            0, ROUND_SD, (ROUNDS, 1, 1)
        )
        counts = rule(stolen)
        counted.append(counts.mean())
        sample = Sample.of(_blocks(ratios, counts))
        if missing(sample):
            continue
        found = infer(sample, level=LEVEL, margin=MARGIN, is_anytime=False)
        false += bool(found.p_value <= 1 - LEVEL and not found.is_withheld)
        widths.append(math.expm1(float(found.high - found.low) / 2))
    return Found(false / experiments, float(np.median(widths)), float(np.mean(counted)))


def _blocks(ratios: FloatArray, counts: BoolArray) -> list[list[float]]:
    """Return the mean of the windows that count, by round and block, without blocks that have none."""
    return [
        [float(ratios[r, b][counts[r, b]].mean()) for b in range(BLOCKS) if counts[r, b].any()]
        for r in range(ROUNDS)
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if a rule errs more often than promised."""
    experiments = int(arguments[0]) if arguments else 2000
    tolerance = 3 * math.sqrt(0.05 * 0.95 / experiments)
    is_kept = True
    print("| machine | " + " | ".join(RULES) + " |\n" + "|---" * (len(RULES) + 1) + "|")
    for machine in MACHINES:
        found = [simulate(machine, rule, experiments) for rule in RULES.values()]
        cells = (f"{one.false:.1%} · ±{one.half_width:.2%} · {one.counted:.0%}" for one in found)
        print(f"| {machine.__name__} | " + " | ".join(cells) + " |")
        is_kept = is_kept and found[-1].false <= 0.05 + tolerance
    print("\nFalse verdicts · median half-width of the 95 % interval · share of the windows that count")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
