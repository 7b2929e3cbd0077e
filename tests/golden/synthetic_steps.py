"""A made-up run of ten steps with everything a report can show. Its figures come from nobody's machine.

Values are drawn from a seeded generator with known true effects. "worker" misses its background rate in
qr1000, and the baseline, "17", in qp1000; round 3 of qp100 is void.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from tests.golden.synthetic import DESIGN, HOST, SERVER

from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.model.experiments.experiment import ArmBlock, Block, DesignKind, Experiment
from pgdyno.model.experiments.step_record import (
    ClientRecord,
    IntervalRecord,
    RoleRecord,
    Stall,
    StallCause,
    StepRecord,
)
from pgdyno.model.experiments.workload import ResetPolicy
from pgdyno.model.variants.variant import Variant

PREFIX = "insert-benchmark-"
ROUNDS, CLIENTS, STEP_S = 6, 2, 30
VARIANTS = ("17", "18-sync", "18-worker", "18-io_uring")
RATES = {
    "l.i0": 61_000.0,
    "l.x": 240_000.0,
    "l.i1": 14_200.0,
    "l.i2": 3_900.0,
    "qr100": 9_100.0,
    "qp100": 10_400.0,
    "qr500": 8_700.0,
    "qp500": 9_900.0,
    "qr1000": 7_800.0,
    "qp1000": 9_100.0,
}
_EFFECTS = {
    ("18-sync", "l.i0"): 1.06,
    ("18-worker", "l.i1"): 0.93,
    ("18-io_uring", "l.i1"): 1.09,
    ("18-io_uring", "l.x"): 1.21,
    ("18-worker", "qp100"): 0.97,
}
_NOISE = {"l.i2": 0.08, "l.i1": 0.012}
_REACHED = {("18-worker", "qr1000"): 0.91, ("17", "qp1000"): 0.934}
_WAITS = {"CPU": 0.62, "IO": 0.17, "LWLock": 0.11, "Client": 0.08, "Lock": 0.02}


@cache
def experiment() -> Experiment:
    """Return a finished comparison of four servers in ten steps."""
    random_ = random.Random(7)  # noqa: S311 — a fixture
    names = tuple(PREFIX + step for step in RATES)
    blocks = tuple(_block(random_, step, round_) for round_ in range(ROUNDS) for step in RATES)
    design = replace(
        DESIGN,
        kind=DesignKind.ALTERNATING,
        rounds=ROUNDS,
        blocks_per_round=1,
        block_s=10.0,
        slice_s=10.0,
        clients=CLIENTS,
    )
    return Experiment(
        id="20261121-140312-insert-benchmark",
        name="insert-benchmark",
        question="How do the variants do in the ten steps of the Insert Benchmark?",
        created="2026-11-21T14:03:12Z",
        pgdyno_version="0.1.0",
        design=design,
        variants=(
            Variant("17", server="source-17"),
            *(
                Variant(f"18-{m}", {"io_method": m}, server="source-18")
                for m in ("sync", "worker", "io_uring")
            ),
        ),
        baseline="17",
        workloads=names,
        reset_policies=dict.fromkeys(names, ResetPolicy.RESTORE),
        blocks=blocks,
        verdicts=analyse(blocks, workloads=names, variants=VARIANTS, baseline="17", design=design),
        host=HOST,
        server=SERVER,
        notes=("Insert Benchmark: corrected mode, 2 clients, rows per client 400000/100000/10000",),
        is_complete=True,
        installation="embedded",
        generators=dict.fromkeys(names, "driver"),
        operations={name: _operation(name.removeprefix(PREFIX)) for name in names},
    )


def _operation(step: str) -> str:
    return "queries" if step.startswith("q") else "rows"


def _block(random_: random.Random, step: str, round_: int) -> Block:
    level = RATES[step] * (1 + random_.gauss(0, 0.01))
    void = "21.0% of the CPU time went to other processes (limit 10%)"
    return Block(
        workload=PREFIX + step,
        round=round_,
        index=0,
        started_ns=1_795_000_000_000_000_000 + round_ * 10**12 + list(RATES).index(step) * 10**11,
        arms=tuple(_arm(random_, step, variant, level) for variant in VARIANTS),
        void=void if (step, round_) == ("qp100", 2) else None,
        audit={"foreign_cpu_share": 0.02},
    )


def _arm(random_: random.Random, step: str, variant: str, level: float) -> ArmBlock:
    effect = _EFFECTS.get((variant, step), 1.0) * (1 + random_.gauss(0, _NOISE.get(step, 0.004)))
    rate = round(level * effect, 3)
    values = {
        "throughput_tps": rate,
        "latency_ms_p50": round(0.4 / effect, 4),
        "latency_ms_p99": round(2.1 / effect * (1 + random_.gauss(0, 0.05)), 4),
        "server_cpu_us_per_transaction": round(1.4e6 / level / effect, 3),
        "client_cpu_us_per_transaction": 4.2,
        "wal_bytes_per_transaction": 310.0,
        "wal_full_page_images_per_transaction": 0.0125,
        "cache_hit_ratio": 0.991,
    }
    if step.startswith("q"):
        values["background_rate_share"] = _REACHED.get((variant, step), 0.999)
    completed = round(rate * STEP_S)
    return ArmBlock(variant, completed, float(STEP_S), values, _record(random_, step, variant, completed))


def _record(random_: random.Random, step: str, variant: str, completed: int) -> StepRecord:
    operation = _operation(step)
    own = "insert" if operation == "rows" else "query"
    per_commit = {"l.i0": 100, "l.x": completed, "l.i1": 50, "l.i2": 5}.get(step, 1)
    transactions = max(1, completed // per_commit)
    names = [own] if step in {"l.i0", "l.x"} else ["insert", "delete", *(["query"] if own == "query" else [])]
    rate = transactions / STEP_S
    stall = 11 if (step, variant) in {("l.i1", "18-worker"), ("l.i2", "17")} else None
    intervals = tuple(
        IntervalRecord(
            float(second),
            1.0,
            {own: round(rate * (0.2 if stall in (second, second - 1) else random_.uniform(0.9, 1.1)))},
            {own: round(random_.uniform(2, 9), 3)},
        )
        for second in range(STEP_S)
    )
    stalls = (Stall(11.0, 13.0, StallCause.CHECKPOINT, "a checkpoint was under way from 10.6 s to 12.9 s"),)
    return StepRecord(
        operations=operation,
        completed=completed,
        running_s=float(STEP_S),
        chores_s=0.0,
        roles=tuple(_role(name, transactions if name == own else 60) for name in names),
        intervals=() if step == "l.x" else intervals,
        stalls=stalls if stall is not None else (),
        waits=_WAITS,
        wait_samples=240,
        counters={
            "pg_stat_wal.wal_fpi": float(round(completed * 0.01)),
            "pg_stat_checkpointer.num_timed": 1.0 if variant == "17" else 0.0,
            "pg_stat_io.client_backend.relation.normal.reads": 900.0 if variant == "18-worker" else 8000.0,
            "pg_stat_io.client_backend.relation.normal.extends": 5000.0,
            **({} if variant == "17" else {"pg_stat_io.io_worker.relation.normal.reads": 7100.0}),
        },
        dead_tuples=1200,
        published=_published(operation, completed / STEP_S),
        target_rows_per_s=float(step.lstrip("qrp")) * CLIENTS if operation == "queries" else None,
    )


def _role(name: str, transactions: int) -> RoleRecord:
    share = transactions // CLIENTS
    return RoleRecord(
        name,
        transactions,
        statements={name: transactions},
        latency_ms={"p50": 0.41, "p95": 1.1, "p99": 2.13, "p999": 6.4, "max": 38.5},
        lag_ms={"p99": 0.2},
        clients=(ClientRecord(transactions - share, 30.0), ClientRecord(share, 30.0)),
        retries={"40P01": 2} if name == "delete" else {},
    )


def _published(operation: str, rate: float) -> dict[str, float]:
    own = {"ips": round(rate, 1)} if operation == "rows" else {"ips": 200.0, "qps": round(rate, 1)}
    return {**own, "csps": 21_000.0, "cpups": 71.0, "cpupq": round(2 * 0.71 * 1e6 / rate, 2), "maxop": 0.0385}
