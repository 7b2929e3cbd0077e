"""How often ``accelerate`` says what of a plan whose effect is known: simulated experiments.

    python -m bench.decide [EXPERIMENTS]      10 000 per row by default, some minutes

Each experiment has two workloads and the rounds that ten minutes hold. The spreads between rounds are those
that recorded duets had: of two servers in docs/results/accelerate-three-layers and builds-quiet, of three,
with the plan without plan_cache_mode, in accelerate-awake. Prints Markdown tables and exits with 1 if a
promise is broken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bench.simulate import seeded

from pgdyno.experiments.decisions.plan_decision import PlanState, decide
from pgdyno.experiments.decisions.plan_outcome import Outcome, estimate
from pgdyno.model.plans.terms import Terms
from pgdyno.stats.sample import FloatArray

BLOCKS = 2
WORKLOADS = ("read-only", "read-write")
WRONG = 0.05
"""How often "pays" may be said of a plan that costs more than the limits."""

_BETWEEN = 0.3  # share of a round's variance that all its blocks have in common; recorded: 0.04 … 0.32


@dataclass(frozen=True)
class Setup:
    """How much ten minutes hold, and standard deviations of a round's log-ratios, by workload."""

    name: str
    rounds: int
    throughput_sd: tuple[float, float]
    tail_sd: tuple[float, float]


SETUPS = (
    Setup("Two servers", 14, (0.027, 0.040), (0.12, 0.18)),
    Setup("Three servers", 10, (0.026, 0.032), (0.055, 0.157)),
)


@dataclass(frozen=True)
class Truth:
    """What a plan really does: ratios of throughput and tail, by workload; a trend over all rounds."""

    name: str
    throughput: tuple[float, float]
    tail: tuple[float, float]
    trend: float = 0.0
    pays_at_most: float = 1.0
    pays_at_least: float = 0.0


TRUTHS = (
    Truth("no gain", (1, 1), (1, 1), pays_at_most=WRONG),
    Truth("no gain, throughput drifts by 6 %", (1, 1), (1, 1), trend=0.06, pays_at_most=WRONG),
    Truth("+5/+5 %, tail the same", (1.05, 1.05), (1, 1)),
    Truth("+10/+10 %, tail −8 %", (1.10, 1.10), (0.92, 0.92), pays_at_least=0.9),
    Truth("+60/+54 %, tail −30/−48 %", (1.60, 1.54), (0.70, 0.52), pays_at_least=0.95),
    Truth("+60/+54 %, throughput drifts by 6 %", (1.60, 1.54), (0.70, 0.52), trend=0.06, pays_at_least=0.9),
    Truth("+10 % and −5 %, at the limit", (1.10, 0.95), (1, 1), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail +10 %, at the limit", (1.10, 1.10), (1, 1.10), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail +25 %", (1.10, 1.10), (1, 1.25), pays_at_most=WRONG),
)


def main() -> None:
    """Simulate every truth and print how often which state was found."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    broken = [line for setup in SETUPS for line in table(setup, experiments)]
    print("\n" + ("\n".join(broken) or "Every promise is kept."))
    sys.exit(1 if broken else 0)


def table(setup: Setup, experiments: int) -> Iterator[str]:
    """Print a table of all truths; yield the promises that it breaks."""
    print(f"{setup.name}: {experiments} experiments of {setup.rounds} rounds and {BLOCKS} blocks each\n")
    print("| truth | " + " | ".join(PlanState) + " |")
    print("|---|" + "---:|" * len(PlanState))
    for truth in TRUTHS:
        yield from report(setup, truth, experiments)
    print()


def report(setup: Setup, truth: Truth, experiments: int) -> Iterator[str]:
    """Print a row of the table; yield the promises that it breaks."""
    random = seeded("decide", truth.name)
    states = Counter(decide(_outcomes(setup, truth, random), Terms()).state for _ in range(experiments))
    shares = {state: states[state] / experiments for state in PlanState}
    print(f"| {truth.name} | " + " | ".join(f"{shares[state]:.3f}" for state in PlanState) + " |", flush=True)
    pays = shares[PlanState.PAYS]
    allowed = truth.pays_at_most + 3 * (truth.pays_at_most * (1 - truth.pays_at_most) / experiments) ** 0.5
    if not truth.pays_at_least <= pays <= allowed:
        yield f'broken: {setup.name}: "{truth.name}" pays in {pays:.3f} of the experiments'


def _outcomes(setup: Setup, truth: Truth, random: np.random.Generator) -> list[Outcome]:
    known = zip(WORKLOADS, truth.throughput, truth.tail, setup.throughput_sd, setup.tail_sd, strict=True)
    return [
        Outcome(
            workload,
            estimate(_series(random, setup.rounds, throughput, sd, truth.trend).tolist()),
            estimate(_series(random, setup.rounds, tail, tail_sd).tolist(), is_gain=False),
        )
        for workload, throughput, tail, sd, tail_sd in known
    ]


def _series(
    random: np.random.Generator, rounds: int, ratio: float, sd: float, trend: float = 0.0
) -> FloatArray:
    """Return log-ratios by round and block whose round means have this standard deviation."""
    between = np.sqrt(_BETWEEN) * sd * random.standard_normal((rounds, 1))
    within = np.sqrt((1 - _BETWEEN) * BLOCKS) * sd * random.standard_normal((rounds, BLOCKS))
    time = np.linspace(-0.5, 0.5, rounds)[:, None]
    return np.asarray(np.log(ratio) + between + within + trend * time)


if __name__ == "__main__":
    main()
