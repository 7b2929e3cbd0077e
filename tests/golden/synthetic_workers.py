"""Made-up curves of a query by 0 to 4 parallel workers, alone and by two clients. From nobody's machine.

With one worker the query is as fast as with any number, for 95 %; two clients at once are best without.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from tests.golden.synthetic_clients import experiment as of_clients

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.workload import Cell, ResetPolicy

ROUNDS = 8
SIZE_BYTES = 241_000_000
ALONE: Mapping[int, float] = {0: 7.0, 1: 10.5, 2: 10.7, 3: 10.6, 4: 10.4}
AT_ONCE: Mapping[int, float] = {0: 15.0, 1: 11.0, 2: 11.0, 3: 10.8, 4: 10.5}


def experiment(
    query: str = "count",
    alone: Mapping[int, float] = ALONE,
    at_once: Mapping[int, float] = AT_ONCE,
    noise: float = 0.004,
) -> Experiment:
    """Return a finished study with these rates by the number of workers."""
    random_ = random.Random(3)  # noqa: S311 — a fixture
    cells = {f"{query}-{workers}": Cell(query, SIZE_BYTES, 1, workers) for workers in alone}
    load = f"{query}, 2 clients at once"
    cells |= {f"{query}-{workers}-by-2": Cell(load, SIZE_BYTES, 2, workers) for workers in at_once}
    blocks = tuple(
        _block(name, round_, (alone if cell.clients == 1 else at_once)[cell.level] * random_.gauss(1, noise))
        for round_ in range(ROUNDS)
        for name, cell in cells.items()
    )
    return replace(
        of_clients(),
        id="20261122-100000-parallel-degree",
        name="parallel-degree",
        question="How many parallel workers are as good as any number of them?",
        workloads=tuple(cells),
        reset_policies=dict.fromkeys(cells, ResetPolicy.KEEP),
        generators=dict.fromkeys(cells, "driver"),
        cells=cells,
        blocks=blocks,
    )


def _block(workload: str, round_: int, tps: float) -> Block:
    arm = ArmBlock("default", int(tps * 3), 3.0, {"throughput_tps": tps})
    return Block(workload, round_, 0, 1_763_800_000_000_000_000 + round_ * 1_000_000_000, (arm,))
