"""Simulated experiments with a known truth: whether intervals and verdicts keep what they promise.

    python -m bench.simulate [EXPERIMENTS]      10 000 per figure by default, 90 seconds

The noise is described in ``noise``. It is analysed by ``pgdyno.stats.inference.infer``, the function behind
every verdict. Prints Markdown tables (docs/results/simulation.md is made of them) and exits with 1 if a
promise is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bench.noise import BLOCK_SD, NOISES, ROUND_SD, Noise, gaussian

from pgdyno.model.experiments.verdict import VarianceComponents
from pgdyno.stats.decision import adjusted_p_values
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_LOOKING, Inference, infer
from pgdyno.stats.power import minimum_detectable_effect
from pgdyno.stats.sample import BoolArray, FloatArray, Sample

SEED = 20_261_121
LEVEL, MARGIN = 0.95, 0.02
LAYOUTS = ((5, 2), (5, 4), (6, 2), (10, 2), (20, 2), (40, 1))
LONGEST = (40, 2)  # of experiments that look after every round


@dataclass(frozen=True)
class Coverage:
    """Shares of experiments. ``covered`` and ``false`` are of those whose verdict was not withheld."""

    covered: float
    withheld: float
    false: float  # better or worse, although nothing had changed
    equivalent: float


def sample_of(values: FloatArray, counts: Sequence[int] | None = None) -> Sample:
    """Return (E, R, B) values as samples; ``counts`` keeps only that many blocks of each round."""
    rounds, blocks = values.shape[1:]
    kept = np.array(counts if counts is not None else [blocks] * rounds, dtype=np.int64)
    return Sample(values[:, np.arange(blocks) < kept[:, None]], kept)


def seeded(*names: object) -> np.random.Generator:
    """Return a generator whose seed depends on what is simulated, and on nothing that ran before."""
    return np.random.default_rng([SEED, *"/".join(map(str, names)).encode()])


def analyse(sample: Sample, *, is_anytime: bool = False) -> Inference:
    """Analyse many experiments as ``decide`` does one."""
    return infer(sample, level=LEVEL, margin=MARGIN, is_anytime=is_anytime)


def says_changed(inference: Inference, p_values: FloatArray | None = None) -> BoolArray:
    """Whether the verdict is better or worse."""
    p_values = inference.p_value if p_values is None else p_values
    return np.asarray((p_values <= 1 - LEVEL) & ~inference.is_withheld)


def fixed_coverage(
    noise: Noise, layout: tuple[int, int], experiments: int, counts: Sequence[int] | None = None
) -> Coverage:
    """Simulate experiments whose numbers were fixed beforehand."""
    values = noise.draw(seeded("fixed", noise.name, layout), (experiments, *layout))
    inference = analyse(sample_of(values, counts))
    given = ~inference.is_withheld
    covers = (inference.low <= 0) & (inference.high >= 0)
    is_equivalent = (inference.p_equivalence <= 1 - LEVEL) & given & ~says_changed(inference)
    return Coverage(
        covered=float(covers[given].mean()) if given.any() else float("nan"),
        withheld=float(1 - given.mean()),
        false=float(says_changed(inference).mean()),
        equivalent=float(is_equivalent.mean()),
    )


def plain_t_coverage(layout: tuple[int, int], experiments: int) -> float:
    """Return the coverage of the t interval itself, not widened by autocorrelation, in normal noise."""
    inference = analyse(sample_of(gaussian(seeded("plain", layout), (experiments, *layout))))
    estimate = inference.estimate
    return float((np.abs(estimate.t_against(0.0)) * estimate.widening <= inference.critical).mean())


def pretested_coverage(noise: Noise, layout: tuple[int, int], experiments: int) -> tuple[float, float]:
    """Return the coverage of all experiments, and of those whose rounds do not look skewed.

    What a pre-test would do that withholds the 5 % most skewed of normal experiments.
    """
    normal = sample_of(gaussian(seeded("skewness", layout), (experiments, *layout)))
    critical = np.quantile(np.abs(_skewness(normal.round_means)), 0.95)
    sample = sample_of(noise.draw(seeded("pretest", noise.name, layout), (experiments, *layout)))
    inference = analyse(sample)
    covers = (inference.low <= 0) & (inference.high >= 0)
    looks_fine = np.abs(_skewness(sample.round_means)) <= critical
    return float(covers.mean()), float(covers[looks_fine].mean())


def _skewness(round_means: FloatArray) -> FloatArray:
    deviations = round_means - round_means.mean(axis=-1, keepdims=True)
    return np.asarray((deviations**3).mean(axis=-1) / (deviations**2).mean(axis=-1) ** 1.5)


@dataclass(frozen=True)
class Peeking:
    """Experiments that look after every round. Shares of all experiments."""

    covered: float  # by all intervals at once
    covered_given: float  # by all at once that a verdict may rest on
    false: float  # stopped as better or worse at some look, although nothing had changed
    naive: float  # the same with the t interval, which must not be looked at


def peeking(noise: Noise, experiments: int) -> Peeking:
    """Simulate experiments that look after every round and stop as soon as they are decided."""
    values = noise.draw(seeded("peeking", noise.name), (experiments, *LONGEST))
    sample = sample_of(values)
    covered = np.ones(experiments, dtype=np.bool)
    covered_given, is_open, is_open_naively = covered.copy(), covered.copy(), covered.copy()
    false, naive = np.zeros(experiments, dtype=np.bool), np.zeros(experiments, dtype=np.bool)
    for rounds in range(2, LONGEST[0] + 1):
        anytime, fixed = (analyse(sample.first_rounds(rounds), is_anytime=kind) for kind in (True, False))
        covers = (anytime.low <= 0) & (anytime.high >= 0)
        covered &= covers
        covered_given &= covers | anytime.is_withheld
        is_equivalent = (anytime.p_equivalence <= 1 - LEVEL) & ~anytime.is_withheld
        false |= is_open & says_changed(anytime)
        is_open &= ~says_changed(anytime) & ~is_equivalent
        naive |= is_open_naively & says_changed(fixed)
        is_open_naively &= ~says_changed(fixed)
    return Peeking(*(float(share.mean()) for share in (covered, covered_given, false, naive)))


def false_under_holm(noise: Noise, rounds: int, experiments: int, *, is_anytime: bool = False) -> float:
    """Return the share of A/A experiments on two workloads with any better or worse.

    Anytime: looking after every round until both workloads are decided, as ``--until decided`` does.
    """
    first, second = (
        sample_of(noise.draw(seeded("holm", noise.name, rounds, w), (experiments, rounds, 2)))
        for w in range(2)
    )
    any_false, is_open = np.zeros(experiments, dtype=np.bool), np.ones(experiments, dtype=np.bool)
    for looked in range(MINIMUM_ROUNDS_FOR_LOOKING, rounds + 1) if is_anytime else (rounds,):
        both = [analyse(sample.first_rounds(looked), is_anytime=is_anytime) for sample in (first, second)]
        adjusted = np.array(
            [adjusted_p_values(pair) for pair in zip(*(i.p_value for i in both), strict=True)]
        )
        changed = [says_changed(i, p) for i, p in zip(both, adjusted.T, strict=True)]
        same = [(i.p_equivalence <= 1 - LEVEL) & ~i.is_withheld for i in both]
        # What counts is what the experiment says when it ends, not what it would have said on the way.
        is_last = is_open & (changed[0] | same[0]) & (changed[1] | same[1]) | (is_open & (looked == rounds))
        any_false |= is_last & (changed[0] | changed[1])
        is_open &= ~is_last
    return float(any_false.mean())


def found_share(layout: tuple[int, int], planted: float, experiments: int) -> float:
    """Return how often a change by ``planted`` (relative) in normal noise is found as better or worse."""
    values = gaussian(seeded("power", layout), (experiments, *layout)) + np.log1p(planted)
    return float(says_changed(analyse(sample_of(values))).mean())


def false_equivalence(layout: tuple[int, int], experiments: int) -> float:
    """Return how often an effect right at the margin is called equivalent (normal noise)."""
    values = gaussian(seeded("margin", layout), (experiments, *layout)) + np.log1p(MARGIN)
    return float((analyse(sample_of(values)).p_equivalence <= 1 - LEVEL).mean())


def main(arguments: Sequence[str]) -> int:
    """Print all tables; return 1 if a promise is broken."""
    experiments = int(arguments[0]) if arguments else 10_000
    tolerance = 3 * np.sqrt(0.05 * 0.95 / experiments)  # three standard errors of a share near 5 %
    broken = _print_fixed(experiments, tolerance) + _print_peeking(experiments, tolerance)
    broken += _print_corrections(experiments, tolerance)
    _print_pretest(experiments)
    print(
        "\n".join(f"BROKEN: {line}" for line in broken) or "\nEvery promise is kept, within the limits above."
    )
    return 1 if broken else 0


def _print_fixed(experiments: int, tolerance: float) -> list[str]:
    broken = []
    columns = [f"{rounds} × {blocks}" for rounds, blocks in LAYOUTS]
    print(
        f"{experiments} experiments per cell: coverage of verdicts given / verdicts withheld / false, in %\n"
    )
    print("| noise | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    plain = [plain_t_coverage(layout, experiments) for layout in LAYOUTS]
    print("| normal, t without widening | " + " | ".join(f"{share * 100:.1f}" for share in plain) + " |")
    if not all(0.94 <= share <= 0.96 for share in plain):
        broken.append("the t interval does not cover 94-96 % in normal noise")
    for noise in NOISES:
        cells = [fixed_coverage(noise, layout, experiments) for layout in LAYOUTS]
        print(f"| {noise.name} | " + " | ".join(map(_cell, cells)) + " |")
        lowest = min(cell.covered for cell in cells)
        if not noise.is_limit and lowest < 0.93 - tolerance:
            broken.append(f"{noise.name}: coverage {lowest:.3f} is below 93 %")
        if noise.draw is gaussian and max(cell.false for cell in cells) > 0.05 + tolerance:
            broken.append(f"{noise.name}: more than 5 % false verdicts")
    ragged = fixed_coverage(NOISES[0], (8, 3), experiments, counts=(3, 3, 1, 3, 2, 3, 3, 1))
    print(f"\nNormal, 8 rounds of 3, 3, 1, 3, 2, 3, 3, 1 blocks: {_cell(ragged)}\n")
    return broken


def _cell(coverage: Coverage) -> str:
    return f"{coverage.covered:.1%} / {coverage.withheld:.1%} / {coverage.false:.1%}".replace("%", "")


def _print_peeking(experiments: int, tolerance: float) -> list[str]:
    broken = []
    print(f"Looking after every round, up to {LONGEST[0]} × {LONGEST[1]}, stopping when decided\n")
    columns = ("noise", "all cover", "all with verdicts cover", "false verdicts", "false if t were used")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for noise in NOISES:
        if noise.is_drift:
            continue
        seen = peeking(noise, experiments)
        shares = (seen.covered, seen.covered_given, seen.false, seen.naive)
        print(f"| {noise.name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
        if not noise.is_limit and seen.covered_given < 0.93 - tolerance:
            broken.append(f"{noise.name}: anytime-valid intervals cover {seen.covered_given:.3f}")
        if noise.draw is gaussian and seen.covered < LEVEL:
            broken.append(f"{noise.name}: anytime-valid intervals cover only {seen.covered:.3f}")
        if noise.draw is gaussian and seen.false > 0.05 + tolerance:
            broken.append(f"{noise.name}: {seen.false:.3f} false verdicts with optional stopping")
    return broken


def _print_corrections(experiments: int, tolerance: float) -> list[str]:
    print("\n| promise, normal noise | rounds × blocks | figure |\n|---|---|---|")
    broken = []
    for rounds, blocks in ((6, 2), (10, 2), (20, 2)):
        layout = f"{rounds} × {blocks}"
        mde = minimum_detectable_effect(VarianceComponents(ROUND_SD, BLOCK_SD), rounds, blocks)
        at_most_5 = {
            "A/A, two workloads with Holm: any false verdict": false_under_holm(
                NOISES[0], rounds, experiments
            ),
            "… looking after every round until both are decided": false_under_holm(
                NOISES[0], rounds, experiments, is_anytime=True
            ),
            f"an effect of {MARGIN:.0%} called equivalent": false_equivalence((rounds, blocks), experiments),
        }
        for promise, share in at_most_5.items():
            print(f"| {promise} | {layout} | {share:.1%} |")
            if share > 0.05 + tolerance:
                broken.append(f"{promise}, {layout}: {share:.3f}")
        for planted in (mde, 0.02):
            found = found_share((rounds, blocks), planted, experiments)
            print(f"| a change of {planted:.2%} found (planned MDE {mde:.2%}) | {layout} | {found:.1%} |")
    return broken


def _print_pretest(experiments: int) -> None:
    columns = [f"{rounds} × {blocks}" for rounds, blocks in LAYOUTS]
    print("\nCoverage of all experiments → of those that a pre-test for skewness would leave, in %\n")
    print("| noise | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for noise in NOISES:
        if noise.draw is gaussian or "variant" in noise.name:
            pairs = [pretested_coverage(noise, layout, experiments) for layout in LAYOUTS]
            cells = [f"{before * 100:.1f} → {after * 100:.1f}" for before, after in pairs]
            print(f"| {noise.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
