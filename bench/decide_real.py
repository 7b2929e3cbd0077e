"""What ``accelerate``'s rule says of real servers whose difference is planted, run after run.

    none    two equal servers                                       must not pay
    tail    the plan sleeps 50 ms in 2 % of its transactions        must not pay
    gain    the baseline counts rows that the plan does not count   should pay

    python -m bench.decide_real RESULTS.jsonl [--budget 3m]

Each run is a line of the file as soon as it has ended; started again, it goes on where it was. The kinds
alternate, so that any number of runs has all of them. ``make bench-decide`` runs all 35: an hour and a half.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pgdyno.app.installations import choose_installation
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.measuring.measure import measure
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.cli.output import open_progress
from pgdyno.experiments.decisions.plan_decision import PlanDecision, PlanState, decide_plan
from pgdyno.model.experiments.experiment import Design, ResetPolicy
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.terms import PLAN, RELOAD_GAIN, Terms
from pgdyno.model.units import parse_duration_s
from pgdyno.model.variants.variant import Variant

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
    "none": Kind(NOTHING, NOTHING, 20),
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
            decision = run(kind, workloads, parse_duration_s(asked.budget), seed=len(done(asked.results)) + 1)
            line = {"kind": kind, "state": decision.state.value, "throughput": throughput(decision)}
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


def run(kind: str, workloads: dict[str, Workload], budget_s: float, seed: int) -> PlanDecision:
    """Measure one pair and return the decision on it, as for a plan that takes a reload."""
    variants = (Variant("default", KINDS[kind].baseline), Variant(PLAN, KINDS[kind].plan))
    study = Study("planted", f"planted: {kind}", variants, tuple(workloads), Design(seed=seed))
    installation = choose_installation(is_embedded=True, bin_directory=None)
    progress = open_progress()
    try:
        experiment = measure(study, Conditions(installation, workloads, study.design, budget_s), progress)
    finally:
        progress.close()
    return decide_plan(experiment, PLAN, Terms(RELOAD_GAIN))


def throughput(decision: PlanDecision) -> list[float] | None:
    """Return the ratio with its 95 % interval: lower end, ratio, upper end."""
    (outcome,) = decision.outcomes
    found = outcome.throughput
    ends = None if found is None else (found.lower(0.025), found.ratio, found.upper(0.025))
    return None if ends is None else [round(end, 4) for end in ends]


def report(results: Path) -> None:
    """Print a table of all runs so far."""
    print("| planted | runs | " + " | ".join(PlanState) + " | should pay |")
    print("|---|---:|" + "---:|" * len(PlanState) + "---|")
    for name, kind in KINDS.items():
        states = Counter(one["state"] for one in done(results) if one["kind"] == name)
        cells = " | ".join(str(states[state.value]) for state in PlanState)
        print(f"| {name} | {states.total()} | {cells} | {'yes' if kind.should_pay else 'no'} |")


if __name__ == "__main__":
    main()
