"""What ``accelerate``'s rule says of real servers whose difference is planted, run after run.

    none    two equal servers                                       must not pay; is their interval right?
    tail    the plan sleeps 50 ms in 2 % of its transactions        must not pay
    gain    the baseline counts rows that the plan does not count   should pay

    python -m bench.decide_real RESULTS.jsonl [--budget 3m]

Each run is a line of the file as soon as it has ended, with its machine; started again, it goes on where it
was. The kinds alternate, so that any number of runs has all of them. ``make bench-decide`` runs all 75: three
hours and a half. Of equal servers it counts the 95 % intervals of throughput that miss "no change", with the
bias of a duet in them (decision 68) and without it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import open_progress
from pgdyno.host.machine.inspection import inspect_host
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.decisions.plan_decision import PlanDecision, PlanState, decide_plan
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import ResetPolicy, Workload
from pgdyno.model.plans.plan import PLAN, RELOAD_GAIN, Terms
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import choose_installation
from pgdyno.workload.workload_choice import find_workloads

SCRIPT = r"""
\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT count(*) FROM generate_series(1, current_setting('pgdyno.extra')::int);
SELECT pg_sleep(current_setting('pgdyno.stall_s')::float) WHERE random() < 0.02;
"""
SOME_ROWS = 80  # measured: 800 more than double a transaction
STALL_S = 0.05


@dataclass(frozen=True)
class Kind:
    """What is planted: settings of the baseline and of the plan; how many runs, and whether it should pay."""

    baseline: dict[str, str]
    plan: dict[str, str]
    runs: int
    should_pay: bool = False


NOTHING = {"pgdyno.extra": "0", "pgdyno.stall_s": "0"}
KINDS = {
    "none": Kind(NOTHING, NOTHING, 60),
    "tail": Kind(NOTHING, {**NOTHING, "pgdyno.stall_s": str(STALL_S)}, 10),
    "gain": Kind({**NOTHING, "pgdyno.extra": str(SOME_ROWS)}, NOTHING, 5, should_pay=True),
}


def main() -> None:
    """Run what is missing, and print how often which state was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--budget", default="3m", help="of each run")
    parser.add_argument("--runs", type=int, help="at most so many now")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "planted.sql"
        file.write_text(SCRIPT)
        found = find_workloads((), (str(file),))
        workloads = {name: replace(one, reset=ResetPolicy.KEEP) for name, one in found.items()}
        for kind in missing(asked.results)[: asked.runs]:
            seed = len(done(asked.results)) + 1
            experiment = run(kind, workloads, parse_duration_s(asked.budget), seed)
            decision = decide_plan(experiment, PLAN, Terms(RELOAD_GAIN))
            line = {
                "kind": kind,
                "state": decision.state.value,
                "rounds": experiment.design.rounds,
                "throughput": throughput(decision),
                "verdict": verdict(experiment),
                "machine": machine(),
                "at": experiment.created,
            }
            with asked.results.open("a", encoding="utf-8") as results:
                results.write(json.dumps(line) + "\n")
            print(f"{kind}: {decision.state}", flush=True)
    report(asked.results)


def done(results: Path) -> list[dict[str, Any]]:
    """Return the runs that the file has."""
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]


def missing(results: Path) -> list[str]:
    """Return the kinds of the runs that are missing, in an order that mixes them evenly."""
    had = Counter(one["kind"] for one in done(results))
    places = [
        (number / kind.runs, name) for name, kind in KINDS.items() for number in range(had[name], kind.runs)
    ]
    return [name for _, name in sorted(places)]


def run(kind: str, workloads: dict[str, Workload], budget_s: float, seed: int) -> Experiment:
    """Measure one pair."""
    variants = (Variant("default", KINDS[kind].baseline), Variant(PLAN, KINDS[kind].plan))
    study = Study(
        "planted", f"planted: {kind}", variants, tuple(workloads), Design(seed=seed, blocks_per_round=1)
    )
    installation = choose_installation(is_embedded=True, bin_directory=None)
    progress = open_progress()
    try:
        return measure(study, Conditions(installation, workloads, study.design, budget_s), progress)
    finally:
        progress.close()


def machine() -> str:
    """Return what tells machines apart: the hypervisor, the processor, and how many CPUs there are."""
    cpu = inspect_host(Path("/")).cpu
    facts = (cpu.virtualisation, cpu.model, cpu.logical_count)
    virtualisation, model, count = (fact.or_none() or "unknown" for fact in facts)
    return f"{virtualisation}, {model}, {count} CPUs"


def verdict(experiment: Experiment) -> list[float] | None:
    """Return the ratio with the interval of its verdict, which has the bias of a duet in it."""
    (found,) = [one.interval for one in experiment.verdicts if one.metric == THROUGHPUT]
    return None if found is None else [round(end, 4) for end in (found.low, found.point, found.high)]


def throughput(decision: PlanDecision) -> list[float] | None:
    """Return the ratio with the 95 % interval that the rounds alone show: lower end, ratio, upper end."""
    (outcome,) = decision.outcomes
    found = outcome.throughput
    ends = None if found is None else (found.lower(0.025), found.ratio, found.upper(0.025))
    return None if ends is None else [round(end, 4) for end in ends]


def misses(results: Path, interval: str) -> str:
    """Say how many 95 % intervals of equal servers miss "no change", and what share that shows at 95 %.

    The interval of the share is that of Clopper and Pearson (1934), Biometrika 26, 404-413.
    """
    found = [one[interval] for one in done(results) if one["kind"] == "none" and one.get(interval)]
    count, missed = len(found), sum(not low <= 1 <= high for low, _, high in found)
    low = special.betaincinv(missed, count - missed + 1, 0.025) if missed else 0.0
    high = special.betaincinv(missed + 1, count - missed, 0.975) if missed < count else 1.0
    return f"{missed} of {count} miss no change: {low:.1%} to {high:.1%} of such experiments"


def spread_beyond_rounds(results: Path) -> str:
    """Return the spread of equal servers' effects beyond the errors of their rounds, in % of throughput.

    τ with Σ (x - mean)² / (s² + τ²) at the median and at the ends of 95 % of chi-square: the Q-profile of
    Viechtbauer (2007), Statistics in Medicine 26, 37-52.
    """
    found = [one for one in done(results) if one["kind"] == "none"]
    low, effects, high = np.log([one["throughput"] for one in found]).T
    critical = special.stdtrit([one["rounds"] - 1 for one in found], 0.975)
    variances = np.square((high - low) / 2 / critical)

    def excess(tau: float, wanted: float) -> float:
        weights = 1 / (variances + tau**2)
        mean = np.average(effects, weights=weights)
        return float(np.sum(weights * np.square(effects - mean)) - wanted)

    ends = []
    for upper in (0.025, 0.5, 0.975):  # of chi-square: the larger, the smaller is τ
        wanted = float(special.chdtri(len(found) - 1, upper))
        is_zero = excess(0.0, wanted) <= 0
        ends.append(0.0 if is_zero else optimize.brentq(excess, 0.0, 0.1, args=(wanted,)))
    least, middle, most = sorted(ends)
    return f"{middle:.2%}, 95 % from {least:.2%} to {most:.2%}"


def report(results: Path) -> None:
    """Print a table of all runs so far."""
    print("| planted | runs | " + " | ".join(PlanState) + " | should pay |")
    print("|---|---:|" + "---:|" * len(PlanState) + "---|")
    for name, kind in KINDS.items():
        states = Counter(one["state"] for one in done(results) if one["kind"] == name)
        cells = " | ".join(str(states[state.value]) for state in PlanState)
        print(f"| {name} | {states.total()} | {cells} | {'yes' if kind.should_pay else 'no'} |")

    print(f"\nintervals of verdicts: {misses(results, 'verdict')}")
    print(f"intervals that the rounds alone show: {misses(results, 'throughput')}")
    print(f"spread of effects beyond the errors of rounds: {spread_beyond_rounds(results)}")


if __name__ == "__main__":
    main()
