"""How often ``accelerate`` says what of a plan whose effect is known: simulated experiments.

    python -m bench.decide [EXPERIMENTS]      10 000 per row by default, some minutes

Each experiment has two workloads (or as many as its row says), the rounds that ten minutes hold, and a look
at half of them, which ends it if it is futile. The spreads between rounds are those that recorded duets had:
of two servers in docs/results/accelerate-three-layers and builds-quiet, of three, with the plan without
plan_cache_mode, in accelerate-awake; of the 99th percentile in accelerate-sched-batch-10. Prints Markdown
tables and exits with 1 if a promise is broken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from bench.simulate import seeded

from pgdyno.experiments.decisions.plan_decision import PlanState, is_futile, state_of
from pgdyno.experiments.decisions.plan_outcome import Outcome, estimate, stalls
from pgdyno.model.plans.terms import Terms
from pgdyno.stats.sample import FloatArray

BLOCKS = 2
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
    p99_sd: tuple[float, float]


SETUPS = (
    Setup("Two servers", 14, (0.027, 0.040), (0.12, 0.18), (0.15, 0.20)),
    Setup("Three servers", 10, (0.026, 0.032), (0.055, 0.157), (0.16, 0.19)),
)


@dataclass(frozen=True)
class Truth:
    """What a plan really does: ratios of throughput, tail and p99, by workload; a trend over all rounds.

    ``p99`` None: as the tail. ``stall`` is how much longer the tail and p99 of one round of the last
    workload are than its others.
    """

    name: str
    throughput: tuple[float, ...]
    tail: tuple[float, ...]
    p99: tuple[float, ...] | None = None
    trend: float = 0.0
    stall: float = 1.0
    pays_at_most: float = 1.0
    slower_at_most: float = 1.0
    pays_at_least: float = 0.0


GAIN, SAME = (1.10, 1.10), (1.0, 1.0)
TRUTHS = (
    Truth("no gain", (1, 1), (1, 1), pays_at_most=WRONG),
    Truth("no gain, throughput drifts by 6 %", (1, 1), (1, 1), trend=0.06, pays_at_most=WRONG),
    Truth("+5/+5 %, tail the same", (1.05, 1.05), (1, 1)),
    Truth("+10/+10 %, tail −8 %", (1.10, 1.10), (0.92, 0.92), pays_at_least=0.9),
    Truth("+60/+54 %, tail −30/−48 %", (1.60, 1.54), (0.70, 0.52), pays_at_least=0.95),
    Truth("+60/+54 %, throughput drifts by 6 %", (1.60, 1.54), (0.70, 0.52), trend=0.06, pays_at_least=0.9),
    Truth("+10 % and −5 %, at the limit", (1.10, 0.95), (1, 1), pays_at_most=WRONG, slower_at_most=WRONG),
    Truth("−5 % on four, at the limit", (0.95,) * 4, (1,) * 4, pays_at_most=WRONG, slower_at_most=WRONG),
    Truth("−5 % on eight, at the limit", (0.95,) * 8, (1,) * 8, pays_at_most=WRONG, slower_at_most=WRONG),
    Truth("+10/+10 %, one tail +10 %, at the limit", GAIN, (1, 1.10), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail +25 %", GAIN, (1, 1.25), pays_at_most=WRONG),
    Truth("+10/+10 %, one p99 +25 %, at the limit", GAIN, SAME, (1, 1.25), pays_at_most=WRONG),
    Truth("+10/+10 %, one p99 +40 %", GAIN, SAME, (1, 1.40), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×3 in 1 round", GAIN, SAME, stall=3, pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×5 in 1 round", GAIN, SAME, stall=5, pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×10 in 1 round", GAIN, SAME, stall=10, pays_at_most=WRONG),
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
    states = Counter(_state(_simulated(setup, truth, random)) for _ in range(experiments))
    shares = {state: states[state] / experiments for state in PlanState}
    print(f"| {truth.name} | " + " | ".join(f"{shares[state]:.3f}" for state in PlanState) + " |", flush=True)
    promised = {PlanState.PAYS: truth.pays_at_most, PlanState.SLOWER: truth.slower_at_most}
    for state, most in promised.items():
        allowed = most + 3 * (most * (1 - most) / experiments) ** 0.5
        least = truth.pays_at_least if state is PlanState.PAYS else 0.0
        if not least <= shares[state] <= allowed:
            yield f'broken: {setup.name}: "{state}" is said of "{truth.name}" in {shares[state]:.3f}'


@dataclass(frozen=True)
class Simulated:
    """Log-ratios of one workload, and its tails with the plan and without it.

    Shapes: log-ratios (rounds, blocks), tails (rounds,).
    """

    throughput: FloatArray
    tail: FloatArray
    p99: FloatArray
    with_plan: FloatArray
    without: FloatArray


def _state(simulated: Sequence[Simulated]) -> PlanState:
    """Return the state that ends an experiment: at half of its rounds if it is futile by then."""
    half = [_outcome(str(number), one, (len(one.tail) + 1) // 2) for number, one in enumerate(simulated)]
    if is_futile(half, Terms()):
        return state_of(half, Terms())
    return state_of([_outcome(str(number), one) for number, one in enumerate(simulated)], Terms())


def _outcome(name: str, one: Simulated, rounds: int | None = None) -> Outcome:
    return Outcome(
        name,
        estimate(one.throughput[:rounds].tolist()),
        estimate(one.tail[:rounds].tolist(), is_gain=False),
        estimate(one.p99[:rounds].tolist(), is_gain=False),
        stalls(one.with_plan[:rounds].tolist(), one.without[:rounds].tolist()),
    )


def _simulated(setup: Setup, truth: Truth, random: np.random.Generator) -> list[Simulated]:
    """Return the figures of all workloads; every other one has the noise of reading, and of writing."""
    ratios = zip(truth.throughput, truth.tail, truth.p99 or truth.tail, strict=True)
    spreads = cycle(zip(setup.throughput_sd, setup.tail_sd, setup.p99_sd, strict=True))
    found = []
    for (throughput, tail, p99), (sd, tail_sd, p99_sd) in zip(ratios, spreads, strict=False):
        tails = _series(random, setup.rounds, tail, tail_sd)
        noise = (tails - np.log(tail)).mean(axis=1) / 2  # half of it is the plan's, half the baseline's
        found.append(
            Simulated(
                _series(random, setup.rounds, throughput, sd, truth.trend),
                tails,
                _series(random, setup.rounds, p99, p99_sd),
                tail * np.exp(noise),
                np.exp(-noise),
            )
        )
    stalled = random.integers(setup.rounds)
    last = found[-1]
    for log_ratios in (last.tail, last.p99):
        log_ratios[stalled] += np.log(truth.stall)
    last.with_plan[stalled] *= truth.stall
    return found


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
