"""Short names for steps: a table of ten has no room for ``insert-benchmark-qr1000``. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.tpch import TPCH_RUNS


def step_workloads(experiment: Experiment) -> tuple[str, ...]:
    """Return the workloads that are steps of a longer one, in their order."""
    return tuple(name for name in experiment.workloads if name in experiment.operations)


def step_names(experiment: Experiment) -> dict[str, str]:
    """Return the short name of every step by its workload's name."""
    steps = step_workloads(experiment)
    return dict(zip(steps, short_names(steps), strict=True))


def tpch_runs(experiment: Experiment) -> tuple[str, ...]:
    """Return the workloads that are whole runs like TPC-H's, not single executions."""
    return tuple(workload for workload, name in step_names(experiment).items() if name in TPCH_RUNS)


def short_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names without the words that all of them begin with; a word ends with a hyphen."""
    shared = "".join(
        letters[0] for letters in takewhile(lambda same: len(set(same)) == 1, zip(*names, strict=False))
    )
    cut = shared.rfind("-") + 1
    return tuple(name[cut:] for name in names)
