"""What a plain tuning script picks: Optuna's TPE, one run of each configuration, the best is the answer.

    python -m bench.plain_tpe ANSWER.json --budget 20m

Such scripts restart one server with new settings, run the load once, and report the configuration with the
largest figure. This one has pgdyno's scratch server and load, so that only the way of choosing differs;
CPUs are kept awake. Its answer is printed as an option for ``pgdyno run peers``, which measures it afresh.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna

from pgdyno.app.installations import embedded
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.measuring.measure import measure
from pgdyno.app.measuring.workload_choice import find_workloads
from pgdyno.cli.output import open_progress
from pgdyno.model.errors import GeneratorFailedError, MemoryProofError, ServerError, SettingError
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.units import parse_duration_s
from pgdyno.model.variants.variant import Variant

WORKLOADS = ("sysbench-read-only", "sysbench-read-write")
NAME = "plain-tpe"
SPACE: Mapping[str, tuple[str, ...]] = {
    "shared_buffers": ("128MB", "256MB", "512MB", "1GB"),
    "effective_cache_size": ("512MB", "1GB", "4GB", "8GB"),
    "work_mem": ("1MB", "4MB", "16MB", "64MB"),
    "maintenance_work_mem": ("64MB", "128MB", "256MB"),
    "random_page_cost": ("1.1", "2", "4"),
    "effective_io_concurrency": ("1", "16", "200"),
    "default_statistics_target": ("50", "100", "500"),
    "wal_buffers": ("4MB", "16MB", "64MB"),
    "max_wal_size": ("1GB", "4GB", "16GB"),
    "checkpoint_completion_target": ("0.5", "0.9"),
    "checkpoint_timeout": ("5min", "15min", "30min"),
    "wal_compression": ("off", "pglz", "lz4"),
    "commit_delay": ("0", "100", "1000"),
    "bgwriter_lru_maxpages": ("0", "100", "1000"),
    "max_parallel_workers_per_gather": ("0", "2"),
    "jit": ("on", "off"),
    "plan_cache_mode": ("auto", "force_generic_plan", "force_custom_plan"),
    "autovacuum_vacuum_scale_factor": ("0.01", "0.05", "0.2"),
}
"""What such scripts search: the settings of the formula pages, and those that tuning guides name."""


@dataclass(frozen=True)
class Run:
    """One run of one configuration. ``per_s`` is throughput by workload; empty if the server failed."""

    settings: dict[str, str]
    per_s: dict[str, float]


def main() -> None:
    """Search until the time is over, and print what won."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("answer", type=Path)
    parser.add_argument("--budget", default="20m")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=asked.seed))
    workloads = find_workloads(WORKLOADS, ())
    ends = time.monotonic() + parse_duration_s(asked.budget)
    default = run({}, workloads)
    if not default.per_s:
        raise SystemExit("the default configuration could not be run")
    runs = [default]
    while time.monotonic() < ends:
        trial = study.ask()
        runs.append(run({name: trial.suggest_categorical(name, SPACE[name]) for name in SPACE}, workloads))
        if not runs[-1].per_s:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        study.tell(trial, gain(runs[-1], default))
        print(f"trial {len(runs) - 1}: {gain(runs[-1], default) - 1:+.1%}", flush=True)
    best = max((one for one in runs if one.per_s), key=lambda one: gain(one, default))
    asked.answer.write_text(json.dumps(document(runs, best, default), indent=1) + "\n", encoding="utf-8")
    print(f"{len(runs) - 1} trials, the best {gain(best, default) - 1:+.1%} by its own figure")
    print(f"--variant {NAME}:{','.join(f'{name}={value}' for name, value in best.settings.items())}")


def run(settings: dict[str, str], workloads: dict[str, Workload]) -> Run:
    """Run the loads once on a server with these settings: two blocks of each.

    Raises: PgdynoError for all that is not this configuration's fault.
    """
    design = Design(rounds=1)
    study = Study(NAME, "one run", (Variant(NAME, settings),), tuple(workloads), design)
    progress = open_progress()
    try:
        found = measure(study, Conditions(embedded(), workloads, design), progress)
    except (GeneratorFailedError, MemoryProofError, ServerError, SettingError) as error:
        print(f"failed: {error.message}", flush=True)
        return Run(settings, {})
    finally:
        progress.close()
    return Run(settings, {name: per_second(found, name) for name in workloads})


def per_second(experiment: Experiment, workload: str) -> float:
    """Return the mean throughput of a workload's blocks."""
    arms = [block.arms[0] for block in experiment.blocks if block.workload == workload]
    return statistics.mean(arm.transactions / arm.running_s for arm in arms)


def gain(one: Run, default: Run) -> float:
    """Return the geometric mean over the workloads of the ratio to the default's only run."""
    return statistics.geometric_mean(one.per_s[name] / default.per_s[name] for name in default.per_s)


def document(runs: list[Run], best: Run, default: Run) -> dict[str, Any]:
    """Return all runs and the answer, for the file."""
    trials = [{"settings": one.settings, "per_s": one.per_s} for one in runs]
    return {"trials": trials, "answer": best.settings, "claimed": gain(best, default) - 1}


if __name__ == "__main__":
    main()
