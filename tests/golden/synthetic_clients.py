"""A made-up curve: one server under 1 to 8 clients. Its figures come from nobody's machine.

Throughput follows the universal scalability law with σ = 0.3 and κ = 0.02; every round is up to 30 % slower.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from tests.golden.synthetic import DESIGN, HOST, SERVER

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.workload import Cell, ResetPolicy
from pgdyno.model.variants.variant import Variant

ROUNDS = 8
LOAD, SIZE_BYTES = "pgbench-select", 620_000_000
CLIENTS = (1, 2, 3, 4, 6, 8)
CELLS = {f"{LOAD}-{clients}": Cell(LOAD, SIZE_BYTES, clients) for clients in CLIENTS}
CONTENTION, CROSSTALK = 0.3, 0.02
_ONE, _NOISE = 9_000.0, 0.004


def rate(clients: int) -> float:
    """Return what the law gives."""
    slowed = 1 + CONTENTION * (clients - 1) + CROSSTALK * clients * (clients - 1)
    return _ONE * clients / slowed


def experiment(rounds: int = ROUNDS) -> Experiment:
    """Return a finished study; the client takes a quarter of the CPU time at any number of clients."""
    random_ = random.Random(7)  # noqa: S311 — a fixture
    slowed = [random_.uniform(0.7, 1.0) for _ in range(rounds)]
    blocks = tuple(
        _block(name, round_, rate(cell.clients) * slowed[round_] * math.exp(random_.gauss(0, _NOISE)))
        for round_ in range(rounds)
        for name, cell in CELLS.items()
    )
    return Experiment(
        id="20261122-090000-clients",
        name="clients",
        question="How many clients are as good as any number of them?",
        created="2026-11-22T09:00:00Z",
        pgdyno_version="0.1.0",
        design=replace(DESIGN, rounds=rounds, blocks_per_round=1),
        variants=(Variant("default"),),
        baseline="default",
        workloads=tuple(CELLS),
        reset_policies=dict.fromkeys(CELLS, ResetPolicy.KEEP),
        blocks=blocks,
        host=HOST,
        server=SERVER,
        is_complete=True,
        installation="embedded",
        generators=dict.fromkeys(CELLS, "driver"),
        cells=CELLS,
    )


def _block(workload: str, round_: int, tps: float) -> Block:
    values = {
        "throughput_tps": tps,
        "server_cpu_us_per_transaction": 75.0,
        "client_cpu_us_per_transaction": 25.0,
    }
    arm = ArmBlock("default", int(tps * 3), 3.0, values)
    return Block(workload, round_, 0, 1_763_800_000_000_000_000 + round_ * 1_000_000_000, (arm,))
