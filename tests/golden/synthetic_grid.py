"""A made-up grid of loads, sizes and clients with five page sizes. Its figures come from nobody's machine.

Values are drawn from a seeded generator with known true effects: gains grow with clients while the database
fits in shared_buffers. "1GB" could not be had for select at 2 GB and 16 clients; one block of tpcb is void.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from tests.golden.synthetic import DESIGN, HOST, SERVER

from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.model.experiments.experiment import ArmBlock, Block, DesignKind, Experiment, SettingDifference
from pgdyno.model.experiments.workload import Cell, ResetPolicy
from pgdyno.model.variants.variant import Variant

ROUNDS = 6
MIB, GIB = 1 << 20, 1 << 30
SHARED_BUFFERS_BYTES = GIB
SIZES = {"512MB": 512 * MIB, "1GB": GIB, "2GB": 2 * GIB}
CLIENTS = (1, 4, 16)
LOADS = {"select": "pgbench-select", "tpcb": "pgbench-tpcb"}
VARIANTS = ("4kB", "2MB", "1GB", "thp-shared", "thp-private")
CELLS = {
    f"{short}-{size}-{clients}": Cell(load, size_bytes, clients)
    for short, load in LOADS.items()
    for size, size_bytes in SIZES.items()
    for clients in CLIENTS
}
NOT_TO_BE_HAD = "no 1 GB pages: memory is too fragmented"

_LEVELS = {"pgbench-select": 9_400.0, "pgbench-tpcb": 910.0}  # transactions/s of one client
_SPEEDUPS = {1: 1.0, 4: 3.4, 16: 4.6}
_GAINS = {
    "4kB": 0.0,
    "2MB": 0.055,
    "1GB": 0.06,
    "thp-shared": 0.045,
    "thp-private": -0.03,
}  # in memory, 16 clients
_NOISE = {"pgbench-select": 0.004, "pgbench-tpcb": 0.02}
_HUGE_SHARE = {"4kB": 0.0, "2MB": 1.0, "1GB": 1.0, "thp-shared": 0.97, "thp-private": 0.01}


@cache
def experiment() -> Experiment:
    """Return a finished grid of 18 cells."""
    random_ = random.Random(11)  # noqa: S311 — a fixture
    blocks = tuple(_block(random_, workload, round_) for round_ in range(ROUNDS) for workload in CELLS)
    design = replace(
        DESIGN, kind=DesignKind.ALTERNATING, rounds=ROUNDS, blocks_per_round=1, block_s=10.0, clients=16
    )
    return Experiment(
        id="20261122-081500-huge-pages",
        name="huge-pages",
        question="Do huge pages make PostgreSQL faster on this machine, and where?",
        created="2026-11-22T08:15:00Z",
        pgdyno_version="0.1.0",
        design=design,
        variants=tuple(
            Variant(name, {"huge_pages": "off" if name == "4kB" or "thp" in name else "on"})
            for name in VARIANTS
        ),
        baseline="4kB",
        workloads=tuple(CELLS),
        reset_policies={
            name: ResetPolicy.KEEP if "select" in name else ResetPolicy.RESTORE for name in CELLS
        },
        blocks=blocks,
        verdicts=analyse(blocks, workloads=tuple(CELLS), variants=VARIANTS, baseline="4kB", design=design),
        settings=tuple(SettingDifference(name, "shared_buffers", "1GB", "1GB") for name in VARIANTS),
        host=HOST,
        server=SERVER,
        notes=("Left out to keep the budget of 45 min: 32 clients.",),
        is_complete=True,
        installation="embedded",
        generators=dict.fromkeys(CELLS, "driver"),
        cells=CELLS,
    )


def _block(random_: random.Random, workload: str, round_: int) -> Block:
    cell = CELLS[workload]
    weather = 1 + random_.gauss(0, _NOISE[cell.load])
    void = "13.1% of the CPU time was stolen by the hypervisor (limit 10%)"
    return Block(
        workload=workload,
        round=round_,
        index=0,
        started_ns=1_795_000_000_000_000_000 + round_ * 10**12 + list(CELLS).index(workload) * 10**10,
        arms=tuple(_arm(random_, cell, name, weather) for name in VARIANTS),
        void=void if (workload, round_) == ("tpcb-1GB-4", 2) else None,
        audit={"steal_share": 0.01},
    )


def _arm(random_: random.Random, cell: Cell, variant: str, weather: float) -> ArmBlock:
    if (cell, variant) == (CELLS["select-2GB-16"], "1GB"):
        return ArmBlock(variant, 0, 0.0, {}, void=NOT_TO_BE_HAD)
    fits = cell.database_bytes <= SHARED_BUFFERS_BYTES
    share = (cell.clients / 16) ** 0.5 * (1.0 if fits else 0.3) * (0.5 if "tpcb" in cell.load else 1.0)
    noise = random_.gauss(0, _NOISE[cell.load] * 0.8)
    level = _LEVELS[cell.load] * _SPEEDUPS[cell.clients] * (1.0 if fits else 0.42)
    tps = level * weather * (1 + _GAINS[variant] * share + noise)
    touched = min(cell.database_bytes, SHARED_BUFFERS_BYTES)
    huge = _HUGE_SHARE[variant]
    return ArmBlock(
        variant,
        round(tps * 10),
        10.0,
        {
            "throughput_tps": round(tps, 2),
            "server_cpu_us_per_transaction": round(1e6 / tps * (1 + random_.gauss(0, 0.003)), 3),
            "latency_ms_p99": round(2.2e3 * cell.clients / tps * (1 + random_.gauss(0, 0.04)), 4),
            "minor_faults_per_transaction": round(0.9 * (1 - 0.9 * huge) / cell.clients, 4),
            "page_table_bytes": float(round((6 + cell.clients) * (touched / 512 * (1 - huge) + 300_000))),
            "huge_page_bytes": round(SHARED_BUFFERS_BYTES * huge / (2 * MIB)) * 2.0 * MIB,
        },
    )
