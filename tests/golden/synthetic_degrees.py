"""Made-up runs like TPC-H's in which every query's best degree is known by construction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from tests.golden.synthetic_tpch import NAMES, experiment_of

from pgdyno.model.experiments.experiment import Experiment

SETTING = "max_parallel_workers_per_gather"
SEED = 20_261_122
# Milliseconds by degree. The best degree is the smallest whose time is at most 1/0.95 of the shortest.
TIMES_MS: dict[str, dict[int, float]] = {
    "q1": {0: 400, 1: 210, 2: 145, 4: 90},  # more is better to the end: 4
    "q3": {0: 100, 1: 61, 2: 50, 4: 49},  # 50 is within 5 % of 49: 2
    "q4": {0: 100, 1: 125, 2: 130, 4: 140},  # workers only cost: 0
    "q6": {0: 100, 1: 60, 2: 75, 4: 90},  # one, and more are worse: 1
    "throughput": {0: 20, 1: 24, 2: 28, 4: 32},  # others need the CPUs: 0
}
SHORT = {0: 20.0, 1: 20.0, 2: 20.0, 4: 20.0}  # of all others: their plans have no workers


def simulated(
    times_ms: Mapping[str, Mapping[int, float]],
    *,
    rounds: int = 8,
    noise: float = 0.005,
    planned: Mapping[str, Mapping[int, float]] | None = None,
    usual: Mapping[int, float] = SHORT,
    seed: int = SEED,
) -> Experiment:
    """Return an experiment with these times and noise, which is the standard deviation of their logarithms.

    ``planned`` are the workers that the server counts, half of which it launches; None: it does not count.
    ``usual`` are the times of executions that are not named.
    """
    random = np.random.default_rng(seed)
    rates = {
        (name, f"degree-{degree}", round_): float(1000 / time_ms * np.exp(noise * random.standard_normal()))
        for name in NAMES
        for degree, time_ms in times_ms.get(name, usual).items()
        for round_ in range(rounds)
    }
    settings = {f"degree-{degree}": {SETTING: str(degree)} for degree in usual}
    workers = {
        (name, f"degree-{degree}"): _counted(planned.get(name, {}).get(degree, 0.0))
        for name in NAMES
        for degree in usual
        if planned is not None
    }
    return experiment_of(settings, rates, workers)


def _counted(planned: float) -> dict[str, float]:
    share = {"parallel_workers_launched_share": 0.5} if planned else {}
    return {"parallel_workers_planned": planned, **share}
