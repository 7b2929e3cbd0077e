"""Whether a planted slowdown is found, and a planted nothing is not.

Every transaction of the workload reads an account and then counts ``pgdyno.extra`` generated rows; the
setting is 0 in the baseline. How many rows cost 2 % is found first, by comparing server CPU per transaction
with 0 and with 2000 rows; then 2 % and 0 % are planted and compared as any variant would be.

    python -m bench.planted --budget 5m
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import open_progress
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.workload import ResetPolicy, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import choose_installation
from pgdyno.studies.compare import comparison
from pgdyno.workload.workload_choice import find_workloads

SCRIPT = r"""
\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT count(*) FROM generate_series(1, current_setting('pgdyno.extra')::int);
"""
CALIBRATION_ROWS = 2000
PLANTED = 0.02


def run(workloads: dict[str, Workload], rows: int, budget_s: float, seed: int) -> Experiment:
    """Compare no extra rows with ``rows`` of them."""
    conditions = Conditions(
        choose_installation(is_embedded=True, bin_directory=None),
        workloads,
        replace(Design(), seed=seed),
        budget_s,
    )
    progress = open_progress()
    try:
        variants = (
            Variant("plain", {"pgdyno.extra": "0"}),
            Variant("planted", {"pgdyno.extra": str(rows)}),
        )
        study = comparison(variants, conditions.workloads, conditions.design)
        return measure(study, conditions, progress)
    finally:
        progress.close()


def report(label: str, experiment: Experiment) -> None:
    """Print the verdicts."""
    void = sum(1 for block in experiment.blocks if block.void)
    print(f"{label}: experiment {experiment.id}, {len(experiment.blocks)} blocks, {void} void")
    for verdict in experiment.verdicts:
        print(f"  {verdict.metric}: {verdict.decision.value}, {verdict.reason}")


def main() -> None:
    """Calibrate, then plant 2 % and 0 %."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", default="5m", help="for each of the two comparisons")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "planted.sql"
        file.write_text(SCRIPT)
        found = find_workloads((), (str(file),))
        workloads = {name: replace(w, reset=ResetPolicy.KEEP) for name, w in found.items()}
        calibration = run(workloads, CALIBRATION_ROWS, 60.0, seed=7)
        report("calibration", calibration)
        cost = next(v.effect for v in calibration.verdicts if v.metric == "server_cpu_us_per_transaction")
        if cost is None:
            raise SystemExit("the calibration gave no effect: the machine is too noisy")
        rows = round(PLANTED / ((cost - 1) / CALIBRATION_ROWS))
        print(f"{CALIBRATION_ROWS} rows cost {cost - 1:.1%} of server CPU; 2 % are {rows} rows")
        budget_s = parse_duration_s(asked.budget)
        report("planted 2 %", run(workloads, rows, budget_s, seed=8))
        report("planted 0 %", run(workloads, 0, budget_s, seed=9))


if __name__ == "__main__":
    main()
