"""A made-up study of the loop: what its parts take is known. Its figures come from nobody's machine.

At one client, in µs: 40 for a transaction, of which the server's CPU takes 28; 6.02 for an execution in C and
7.52 in PL/pgSQL; 0.02 for the loop itself; 5 for a row of one query. All scale alike up to 2 CPUs.
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.golden.synthetic import DESIGN, HOST, SERVER

from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.workload import (
    C_LOOP,
    CLIENT,
    EMPTY_LOOP,
    ONE_QUERY,
    PLPGSQL_LOOP,
    Cell,
    ResetPolicy,
)
from pgdyno.model.variants.variant import Variant

ROUNDS = 8
SIZE_BYTES = 620_000_000
CLIENTS = (1, 2, 3, 4)
SERVER_CPU_US = {CLIENT: 28.0, C_LOOP: 6.02, PLPGSQL_LOOP: 7.52, EMPTY_LOOP: 0.02, ONE_QUERY: 5.0}
TRANSACTION_US = 40.0
CELLS = {
    **{
        f"{load}-{clients}": Cell(load, SIZE_BYTES, clients, executions=1 if load == CLIENT else 10_000)
        for load in (CLIENT, C_LOOP, PLPGSQL_LOOP)
        for clients in CLIENTS
    },
    f"{EMPTY_LOOP}-1": Cell(EMPTY_LOOP, SIZE_BYTES, 1, executions=10_000_000),
    f"{ONE_QUERY}-1": Cell(ONE_QUERY, SIZE_BYTES, 1, executions=10_000),
}


def experiment(rounds: int = ROUNDS, noise: float = 0.01) -> Experiment:
    """Return a finished study; every round is up to 30 % slower, its blocks differ by ``noise``."""
    random_ = random.Random(11)  # noqa: S311 — a fixture
    blocks = []
    for round_ in range(rounds):
        slowed = random_.uniform(1.0, 1.3)
        for name, cell in CELLS.items():
            blocks.append(_block(name, cell, round_, slowed * (1 + random_.uniform(-noise, noise))))
    return Experiment(
        id="20261122-100000-loop",
        name="loop",
        question="What does a transaction's time consist of, and who limits how it scales?",
        created="2026-11-22T10:00:00Z",
        pgdyno_version="0.1.0",
        design=replace(DESIGN, rounds=rounds, blocks_per_round=1),
        variants=(Variant("default"),),
        baseline="default",
        workloads=tuple(CELLS),
        reset_policies=dict.fromkeys(CELLS, ResetPolicy.KEEP),
        blocks=tuple(blocks),
        host=HOST,
        server=SERVER,
        is_complete=True,
        installation="embedded",
        generators=dict.fromkeys(CELLS, "driver"),
        cells=CELLS,
    )


def _block(workload: str, cell: Cell, round_: int, slowed: float) -> Block:
    alone_us = (TRANSACTION_US if cell.load == CLIENT else SERVER_CPU_US[cell.load]) * slowed
    values = {
        "throughput_tps": 1e6 / alone_us * min(2, cell.clients),
        "server_cpu_us_per_transaction": SERVER_CPU_US[cell.load] * slowed,
        "client_cpu_us_per_transaction": 9.0 if cell.load == CLIENT else 0.001,
    }
    arm = ArmBlock("default", 100_000, 2.0, values)
    return Block(workload, round_, 0, 1_763_800_000_000_000_000 + round_ * 1_000_000_000, (arm,))
