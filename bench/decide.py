"""How often ``accelerate`` says what of a plan whose effect is known: simulated experiments.

    python -m bench.decide [EXPERIMENTS]      10 000 per row by default, some minutes

Each experiment has two workloads (or as many as its row says), every other one of which writes, the rounds
that ten minutes hold, and a look after five of them, which ends it if the plan pays by then or is futile.
The spreads between rounds are those that recorded duets had: of two servers in
docs/results/accelerate-three-layers and builds-quiet, of three, with the plan without plan_cache_mode, in
accelerate-awake; of the 99th percentile in accelerate-sched-batch-10; of the tail with load on one server
alone, a guess. Of three servers, the table is of the plan without plan_cache_mode, which is decided first.
Noise is normal and independent there; a table for each other kind of noise has the truths at a limit.
Prints Markdown tables and exits with 1 if a promise is broken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from bench.simulate import seeded

from pgdyno.measure.decisions.plan_decision import (
    LOOK_ERROR,
    PlanState,
    final_error,
    is_futile,
    pays_at_look,
    state_of,
)
from pgdyno.measure.decisions.plan_outcome import Estimate, Outcome, estimate, estimate_alone, stalls
from pgdyno.model.experiments.experiment import DUET_BIAS, STRETCH_ROUNDS
from pgdyno.model.plans.plan import Terms
from pgdyno.stats.inference import DRIFT_LEVEL, MINIMUM_ROUNDS_FOR_VERDICT
from pgdyno.stats.sample import BoolArray, FloatArray

LOOK = MINIMUM_ROUNDS_FOR_VERDICT
WRONG = 0.05
"""How often "pays" may be said of a plan that costs more than the limits."""
UNSEEN = 0.10
"""The same of a plan that is slow in 1 of 10 rounds: 0.9^11 = 0.31 of experiments of 11 rounds have none."""

_BETWEEN = 0.3  # share of a round's variance that all its blocks have in common; recorded: 0.04 … 0.32
_BLOCKS = 2  # of the rounds that the spreads are of


@dataclass(frozen=True)
class Setup:
    """How much ten minutes hold, and standard deviations of log-ratios of a round of two blocks, by workload.

    ``alone_sd`` is that of the tail of a stretch in which no other server runs, of workloads that write.
    """

    name: str
    rounds: int
    throughput_sd: tuple[float, float]
    tail_sd: tuple[float, float]
    p99_sd: tuple[float, float]
    alone_sd: float


SETUPS = (
    Setup("Two servers", 17, (0.027, 0.040), (0.12, 0.18), (0.15, 0.20), 0.15),
    Setup("Three servers", 11, (0.026, 0.032), (0.055, 0.157), (0.16, 0.19), 0.15),
)


@dataclass(frozen=True)
class Noise:
    """How log-ratios vary from round to round, with variance 1, and what all rounds have in common.

    ``bias`` is the standard deviation of the throughput's log-ratio from one experiment to the next.
    ``is_promised``: whether the rule promises anything under it.
    """

    name: str
    draw: Callable[[np.random.Generator, int], FloatArray]
    bias: float = 0.0
    is_promised: bool = True


def _with_outliers(random: np.random.Generator, rounds: int) -> FloatArray:
    """Return draws of which one in twenty varies five times as much."""
    wide = np.where(random.random(rounds) < 0.05, 5.0, 1.0)
    return np.asarray(wide * random.standard_normal(rounds) / np.sqrt(0.95 + 0.05 * 25))


def _of_two_modes(random: np.random.Generator, rounds: int) -> FloatArray:
    """Return draws around two values, three standard deviations of either apart."""
    mode = random.choice([-1.5, 1.5], rounds)
    return np.asarray((mode + random.standard_normal(rounds)) / np.sqrt(1 + 1.5**2))


def _dependent(random: np.random.Generator, rounds: int) -> FloatArray:
    """Return draws with a correlation of 0.4 from one to the next."""
    draws = random.standard_normal(rounds)
    for number in range(1, rounds):
        draws[number] = 0.4 * draws[number - 1] + np.sqrt(1 - 0.4**2) * draws[number]
    return draws


NORMAL = Noise("normal", lambda random, rounds: random.standard_normal(rounds))
OTHERS = (
    Noise("Student's t with 3 degrees of freedom", lambda random, n: random.standard_t(3, n) / np.sqrt(3)),
    Noise("one round in twenty varies five times as much", _with_outliers),
    Noise("two modes", _of_two_modes),
    Noise("normal, and each experiment has a bias of 0.5 %", NORMAL.draw, bias=DUET_BIAS),
    Noise("a correlation of 0.4 from one round to the next", _dependent, is_promised=False),
)


@dataclass(frozen=True)
class Truth:
    """What a plan really does: ratios of throughput, tail and p99, by workload; a trend over all rounds.

    ``p99`` None: as the tail. ``stall`` is how much longer the tail and p99 of one of the first rounds, up to
    the look, of the last workload are than its others. ``slow_starts`` is the share of rounds in which a
    start of the plan's server has half its throughput. ``alone`` is the ratio of the tails of stretches in
    which no other server runs, None: as the tail. ``min_gain`` is the gain that the change has to bring.
    ``stalls`` are in three of ten rounds: how much longer the last workload's tail is, and the share of
    such rounds that are void. ``void_share`` of all rounds are void: at random, or those of the worst tails.
    """

    name: str
    throughput: tuple[float, ...]
    tail: tuple[float, ...]
    p99: tuple[float, ...] | None = None
    trend: float = 0.0
    stall: float = 1.0
    slow_starts: float = 0.0
    alone: float | None = None
    min_gain: float = 0.0
    stalls: tuple[float, float] = (1.0, 0.0)
    void_share: float = 0.0
    is_worst_void: bool = False
    pays_at_most: float = 1.0
    slower_at_most: float = 1.0
    pays_at_least: float = 0.0


GAIN, SAME = (1.10, 1.10), (1.0, 1.0)
TRUTHS = (
    Truth("no gain", (1, 1), (1, 1), pays_at_most=WRONG),
    Truth("no gain, throughput drifts by 6 %", (1, 1), (1, 1), trend=0.06, pays_at_most=WRONG),
    Truth("+2/+2 %, which a restart has to exceed", (1.02,) * 2, SAME, min_gain=0.02, pays_at_most=WRONG),
    Truth("+5/+5 %, tail the same", (1.05, 1.05), (1, 1)),
    Truth("+10/+10 %, tail −8 %", (1.10, 1.10), (0.92, 0.92), pays_at_least=0.6),
    Truth("+60/+54 %, tail −30/−48 %", (1.60, 1.54), (0.70, 0.52), pays_at_least=0.95),
    Truth("+60/+54 %, throughput drifts by 6 %", (1.60, 1.54), (0.70, 0.52), trend=0.06, pays_at_least=0.9),
    Truth("+10 % and −5 %, at the limit", (1.10, 0.95), (1, 1), pays_at_most=WRONG, slower_at_most=WRONG),
    Truth(
        "+5/+5 %, half as fast in 1 of 10 rounds", (1.05, 1.05), (1, 1), slow_starts=0.1, pays_at_most=UNSEEN
    ),
    Truth(
        "+10 % on three and −5 % on one, at the limit",
        (1.10, 1.10, 1.10, 0.95),
        (1,) * 4,
        pays_at_most=WRONG,
        slower_at_most=WRONG,
    ),
    Truth("−5 % on four, at the limit", (0.95,) * 4, (1,) * 4, pays_at_most=WRONG, slower_at_most=WRONG),
    Truth("−5 % on eight, at the limit", (0.95,) * 8, (1,) * 8, pays_at_most=WRONG, slower_at_most=WRONG),
    Truth("+10/+10 %, one tail +10 %, at the limit", GAIN, (1, 1.10), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail +25 %", GAIN, (1, 1.25), pays_at_most=WRONG),
    Truth("+10/+10 %, one p99 +25 %, at the limit", GAIN, SAME, (1, 1.25), pays_at_most=WRONG),
    Truth("+10/+10 %, one p99 +40 %", GAIN, SAME, (1, 1.40), pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×3 in 1 round", GAIN, SAME, stall=3, pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×5 in 1 round", GAIN, SAME, stall=5, pays_at_most=WRONG),
    Truth("+10/+10 %, one tail ×10 in 1 round", GAIN, SAME, stall=10, pays_at_most=WRONG),
    Truth("one tail +10 %, 4 of 14 rounds void", GAIN, (1, 1.10), void_share=4 / 14, pays_at_most=WRONG),
    Truth(
        "one tail +10 %, the 4 worst of 14 rounds void",
        *(GAIN, (1, 1.10)),
        void_share=4 / 14,
        is_worst_void=True,
    ),
    Truth("one tail ×1.6 in 3 of 10 rounds", GAIN, SAME, stalls=(1.6, 0.0), pays_at_most=WRONG),
    Truth("one tail ×1.6 in 3 of 10 rounds, half of these void", GAIN, SAME, stalls=(1.6, 0.5)),
    Truth("one tail ×1.6 in 3 of 10 rounds, all of these void", GAIN, SAME, stalls=(1.6, 1.0)),
    Truth("+10/+10 %, alone the tail +50 %, at the limit", GAIN, SAME, alone=1.5, pays_at_most=WRONG),
    Truth("+10/+10 %, alone the tail +62 %", GAIN, SAME, alone=1.62, pays_at_most=WRONG),
)

PRECISE = Setup("Two servers, very precise", 30, (0.008, 0.008), (0.03, 0.03), (0.04, 0.04), 0.15)
RELOAD = Truth(
    "no gain, which a reload has to exceed by 1 %", (1, 1), (1, 1), min_gain=0.01, pays_at_most=WRONG
)


def main() -> None:
    """Simulate every truth and print how often which state was found."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    broken = [line for setup in SETUPS for line in table(setup, TRUTHS, NORMAL, experiments)]
    limits = [one for one in TRUTHS if one.pays_at_most < 1 and one.stall == 1]
    broken += [line for noise in OTHERS for line in table(SETUPS[0], limits, noise, experiments)]
    named = "normal, and each experiment has a bias of {:.1%}"
    biased = [Noise(named.format(bias), NORMAL.draw, bias, bias <= DUET_BIAS) for bias in (DUET_BIAS, 0.008)]
    broken += [line for noise in biased for line in table(PRECISE, [RELOAD], noise, experiments)]
    print("\n" + ("\n".join(broken) or "Every promise is kept."))
    sys.exit(1 if broken else 0)


def table(setup: Setup, truths: Sequence[Truth], noise: Noise, experiments: int) -> Iterator[str]:
    """Print a table of these truths; yield the promises that it breaks."""
    print(
        f"{setup.name}: {experiments} experiments of up to {setup.rounds} rounds each; noise: {noise.name}\n"
    )
    print("| truth | " + " | ".join(PlanState) + " | ended by the look | interval misses |")
    print("|---|" + "---:|" * (len(PlanState) + 2))
    for truth in truths:
        yield from report(setup, truth, noise, experiments)
    print()


def report(setup: Setup, truth: Truth, noise: Noise, experiments: int) -> Iterator[str]:
    """Print a row of the table; yield the promises that it breaks."""
    random = seeded("decide", truth.name)
    terms = Terms(truth.min_gain, looks=2)
    found = [_state(_simulated(setup, truth, noise, random), terms) for _ in range(experiments)]
    states = Counter(state for state, _, _ in found)
    shares = {state: states[state] / experiments for state in PlanState}
    early = sum(is_early for _, is_early, _ in found) / experiments
    mean = truth.throughput[0] * 0.5**truth.slow_starts
    missed = sum(not lower <= mean <= upper for _, _, (lower, upper) in found) / experiments
    columns = [*(shares[state] for state in PlanState), early, missed]
    print(f"| {truth.name} | " + " | ".join(f"{share:.3f}" for share in columns) + " |", flush=True)
    promised = {PlanState.PAYS: truth.pays_at_most, PlanState.SLOWER: truth.slower_at_most}
    for state, most in promised.items():
        allowed = most + 3 * (most * (1 - most) / experiments) ** 0.5
        least = truth.pays_at_least if state is PlanState.PAYS else 0.0
        if noise.is_promised and not least <= shares[state] <= allowed:
            where = f"{setup.name}, {noise.name}"
            yield f'broken: {where}: "{state}" is said of "{truth.name}" in {shares[state]:.3f}'


@dataclass(frozen=True)
class Simulated:
    """Log-ratios of one workload, and its tails with the plan and without it.

    Shapes: log-ratios (rounds, 1), tails (rounds,), alone (stretches,), none of a workload that only reads.
    """

    throughput: FloatArray
    tail: FloatArray
    p99: FloatArray
    with_plan: FloatArray
    without: FloatArray
    alone: FloatArray | None

    def without_rounds(self, void: BoolArray) -> Simulated:
        """Return the figures of the other rounds."""
        kept = ~void
        return Simulated(
            *(self.throughput[kept], self.tail[kept], self.p99[kept]),
            *(self.with_plan[kept], self.without[kept], self.alone),
        )


def _state(simulated: Sequence[Simulated], terms: Terms) -> tuple[PlanState, bool, tuple[float, float]]:
    """Return the state that ends an experiment, whether the look did, and what it says of one workload.

    That is the 95 % interval of the first workload's throughput.
    """
    error = LOOK_ERROR
    seen = _outcomes(simulated, error, LOOK)
    if pays_at_look(seen, terms):
        return PlanState.PAYS, True, _interval(seen[0])
    if is_futile(seen, terms):
        return state_of(seen, terms), True, _interval(seen[0])
    error = final_error(terms)
    outcomes = _outcomes(simulated, error)
    return state_of(outcomes, terms), False, _interval(outcomes[0])


def _interval(outcome: Outcome) -> tuple[float, float]:
    """Return both ends of the 95 % interval of throughput."""
    assert outcome.throughput is not None  # noqa: S101 — five rounds have one
    return outcome.throughput.lower(0.025), outcome.throughput.upper(0.025)


def _outcomes(simulated: Sequence[Simulated], error: float, rounds: int | None = None) -> list[Outcome]:
    """Return what ``outcomes_of`` returns of an experiment with these figures in its first rounds."""
    drift_level = DRIFT_LEVEL / (3 * len(simulated))

    def estimated(log_ratios: FloatArray, *, is_gain: bool) -> Estimate | None:
        figures = log_ratios[:rounds].tolist()
        return estimate(figures, drift_level=drift_level, is_gain=is_gain, bias=DUET_BIAS)

    return [
        Outcome(
            str(number),
            estimated(one.throughput, is_gain=True),
            estimated(one.tail, is_gain=False),
            estimated(one.p99, is_gain=False),
            stalls(one.with_plan[:rounds].tolist(), one.without[:rounds].tolist(), error),
            None if one.alone is None else estimate_alone(one.alone.tolist()),
            has_stretches=one.alone is not None,
        )
        for number, one in enumerate(simulated)
    ]


def _simulated(setup: Setup, truth: Truth, noise: Noise, random: np.random.Generator) -> list[Simulated]:
    """Return the figures of all workloads; every other one has the noise of reading, and of writing."""

    def series(ratio: float, sd: float) -> FloatArray:
        """Return log-ratios of rounds of one block, where means of rounds of two have this spread."""
        between = np.sqrt(_BETWEEN) * sd * noise.draw(random, setup.rounds)
        within = np.sqrt((1 - _BETWEEN) * _BLOCKS) * sd * noise.draw(random, setup.rounds)
        return np.asarray(np.log(ratio) + between + within)[:, None]

    trend = truth.trend * np.linspace(-0.5, 0.5, setup.rounds)[:, None]
    slow = np.where(random.random((setup.rounds, 1)) < truth.slow_starts, np.log(0.5), 0.0)
    ratios = zip(truth.throughput, truth.tail, truth.p99 or truth.tail, strict=True)
    spreads = cycle(zip(setup.throughput_sd, setup.tail_sd, setup.p99_sd, strict=True))
    found: list[Simulated] = []
    for (throughput, tail, p99), (sd, tail_sd, p99_sd) in zip(ratios, spreads, strict=False):
        tails = series(tail, tail_sd)
        half = (tails - np.log(tail)).mean(axis=1) / 2  # half of the noise is the plan's, half the baseline's
        bias = noise.bias * random.standard_normal()
        found.append(
            Simulated(
                series(throughput, sd) + trend + slow + bias,
                tails,
                series(p99, p99_sd),
                tail * np.exp(half),
                np.exp(-half),
                np.log(tail if truth.alone is None else truth.alone)
                + setup.alone_sd * random.standard_normal(STRETCH_ROUNDS)
                if len(found) % 2
                else None,
            )
        )
    stalled = random.integers(LOOK)
    last = found[-1]
    for log_ratios in (last.tail, last.p99):
        log_ratios[stalled] += np.log(truth.stall)
    last.with_plan[stalled] *= truth.stall
    return _valid(found, truth, random)


def _valid(found: list[Simulated], truth: Truth, random: np.random.Generator) -> list[Simulated]:
    """Return the figures with the truth's stalls, without its void rounds."""
    last, rounds = found[-1], len(found[-1].tail)
    times, void_stalls = truth.stalls
    if times == 1 and not truth.void_share:
        return found
    is_stalled = random.random(rounds) < (0.3 if times > 1 else 0.0)
    for log_ratios in (last.tail, last.p99):
        log_ratios[is_stalled] += np.log(times)
    last.with_plan[is_stalled] *= times
    void = is_stalled & (random.random(rounds) < void_stalls)
    count = round(truth.void_share * rounds)
    order = np.argsort(-last.tail[:, 0]) if truth.is_worst_void else random.permutation(rounds)
    void[order[:count]] = True
    void[np.flatnonzero(void)[: max(0, LOOK - int((~void).sum()))]] = False  # fewer decide nothing
    return [one.without_rounds(void) for one in found]


if __name__ == "__main__":
    main()
