"""What pgdyno-driver costs beside the programs that its workloads come from, and whether it is as faithful.

Driver and original run the same workload on the same server by turns, A B B A and B A A B, a few seconds
each. Every round starts from a fresh copy of the data, on a freshly started server without autovacuum: its
share would fall on whoever's turn it is. Of each round one ratio is taken; intervals are over rounds.

    client CPU    of the program, start included
    server CPU    of the postmaster and all its children, connections and preparation included

Then a thousand connections in an open loop: whether the driver keeps to its schedule, and its memory.

    python -m bench.driver --budget 10m --json driver.json
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from bench.driver_programs import (
    CLIENTS,
    DRIVER,
    Cost,
    driver_run,
    has_sysbench,
    last_phase,
    measure,
    original,
    our_driver,
    run,
)

from pgdyno.base.units import parse_duration_s
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.experiments.workload import SysbenchScript, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.stats import nested
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT, infer
from pgdyno.stats.sample import Sample
from pgdyno.workload.workload_choice import find_workloads

LEVEL = 0.95
MARGIN = 0.05  # server CPU per transaction counts as equal within this
SCALES = {"pgbench": 5, "sysbench": 10}  # both fit into shared buffers: this is about CPU
# The ratio of client CPU per transaction, driver to original, that is wanted; None: for information.
CLIENT_GOALS = {
    "pgbench-select": 1.0,
    "pgbench-tpcb": None,
    "sysbench-read-only": 0.5,
    "sysbench-read-write": None,
}
VARIANT = Variant("default", {"autovacuum": "off", "max_wal_size": "8GB", "checkpoint_timeout": "1h"})
OPEN_LOOP = Variant("open-loop", {"max_connections": "1100"})
CONNECTIONS = 1000
RATE = 2000  # per second over all connections: far from what the server can do
OPEN_LOOP_RUNS = 3
OPEN_LOOP_S = 10


@dataclass(frozen=True)
class Turns:
    """The turns of one round, in order."""

    workload: str
    round: int
    costs: tuple[Cost, ...]

    def log_ratio(self, side: str) -> float:
        """Return ln(driver / original) of CPU time per transaction; ``side`` is a field of ``Cost``."""
        used: dict[bool, float] = defaultdict(float)
        transactions: dict[bool, int] = defaultdict(int)
        for cost in self.costs:
            used[cost.program == DRIVER] += getattr(cost, side)
            transactions[cost.program == DRIVER] += cost.transactions
        return math.log(used[True] / transactions[True] / (used[False] / transactions[False]))


@dataclass(frozen=True)
class Finding:
    """A ratio driver to original with its interval, and what is said of it."""

    workload: str
    original: str
    metric: str
    rounds: int
    ratio: float
    low: float | None
    high: float | None
    p_equivalence: float | None
    verdict: str


@dataclass(frozen=True)
class OpenLoop:
    """One run with many connections, as the driver reports it."""

    connections: int
    transactions_per_s: float
    lag_ms_p99: float
    lag_ms_max: float
    peak_memory_bytes: int


def small_workloads() -> dict[str, Workload]:
    """Return the workloads that are compared, on small data; those whose original is missing are left out."""
    found = find_workloads(tuple(CLIENT_GOALS))
    if not has_sysbench():
        print("sysbench is not installed (apt install sysbench): only pgbench is compared")
        found = {name: w for name, w in found.items() if not isinstance(w.kind, SysbenchScript)}
    return {
        name: replace(w, data_set=replace(w.data_set, scale=SCALES[w.data_set.name]))
        for name, w in found.items()
    }


def play_round(
    arena: ScratchArena, workloads: Mapping[str, Workload], number: int, slice_s: int
) -> list[Turns]:
    """Measure every workload on a fresh server each."""
    played = []
    for name, workload in workloads.items():
        arena.restore([VARIANT], [0], workload.data_set)
        with arena.arms([VARIANT], [0], workload.data_set) as (arm,):
            ours, theirs = our_driver(arena, arm, workload), original(arena, arm, workload)
            for program in (ours, theirs):
                measure(arena, arm, program, 1)  # warm; not counted
            first, second = (ours, theirs) if number % 2 == 0 else (theirs, ours)
            order = (first, second, second, first)
            costs = tuple(measure(arena, arm, program, slice_s) for program in order)
            played.append(Turns(name, number, costs))
    return played


def findings(played: Sequence[Turns]) -> list[Finding]:
    """Judge both sides of every workload."""
    return [
        finding([turns for turns in played if turns.workload == name], side, CLIENT_GOALS[name])
        for name in dict.fromkeys(turns.workload for turns in played)
        for side in ("client_cpu_us", "server_cpu_us")
    ]


def finding(played: Sequence[Turns], side: str, goal: float | None) -> Finding:
    """Judge one metric of one workload: the client against its goal, the server by two one-sided tests."""
    theirs = next(cost.program for cost in played[0].costs if cost.program != DRIVER)
    sample = Sample.of([[turns.log_ratio(side)] for turns in played])
    ratio = math.exp(sample.round_means.mean())
    draft = Finding(
        played[0].workload, theirs, f"{side}_per_transaction", sample.rounds, ratio, None, None, None, ""
    )
    if reason := nested.missing(sample):
        return replace(draft, verdict=f"withheld: {reason.reason}")
    inference = infer(sample, level=LEVEL, margin=MARGIN, is_anytime=False)
    low, high = float(math.exp(inference.low)), float(math.exp(inference.high))
    judged = replace(draft, low=low, high=high, p_equivalence=float(inference.p_equivalence))
    if sample.rounds < MINIMUM_ROUNDS_FOR_VERDICT:
        return replace(judged, verdict=f"withheld: under {MINIMUM_ROUNDS_FOR_VERDICT} rounds")
    verdict = against_goal(low, high, goal) if side == "client_cpu_us" else equivalence(judged)
    return replace(judged, verdict=verdict)


def against_goal(low: float, high: float, goal: float | None) -> str:
    """Say whether the ratio is shown to be at most the goal."""
    if goal is None:
        return "no goal"
    if high <= goal:
        return f"at most {goal:g}: shown"
    return f"at most {goal:g}: " + ("missed" if low > goal else "cannot tell")


def equivalence(judged: Finding) -> str:
    """Say whether the ratio is shown to be within the margin."""
    if judged.low is None or judged.high is None or judged.p_equivalence is None:
        raise ValueError(f"{judged.metric} of {judged.workload} has no interval")
    if judged.p_equivalence <= 1 - LEVEL:
        return f"within ±{MARGIN:.0%}: shown"
    is_outside = judged.low > 1 + MARGIN or judged.high < 1 / (1 + MARGIN)
    return f"within ±{MARGIN:.0%}: " + ("missed" if is_outside else "cannot tell")


def open_loop(arena: ScratchArena, arm: Arm, workload: Workload, seconds: int) -> OpenLoop:
    """Run many connections at a modest rate, after two seconds that do not count."""
    load = (f"--clients={CONNECTIONS}", f"--rate={RATE}", "--warmup=2", f"--time={seconds}")
    phase = last_phase(run(arena, [*driver_run(arena, arm, workload), *load], seconds + 2))
    role = phase["arms"][0]["roles"][0]
    lag_us = role["lag_us"]
    return OpenLoop(
        CONNECTIONS,
        role["transactions_per_s"],
        lag_us["p99"] / 1000,
        lag_us["max"] / 1000,
        phase["driver"]["peak_memory_bytes"],
    )


def compare(workloads: Mapping[str, Workload], budget_s: float, slice_s: int) -> list[Turns]:
    """Play as many rounds as fit into the budget; loading the data is extra."""
    progress = Lines()
    played: list[Turns] = []
    with open_scratch_arena(embedded(), (VARIANT,), progress, is_isolated=True) as arena:
        for workload in workloads.values():
            arena.load(VARIANT, workload.data_set)
        started, number, round_s = time.monotonic(), 0, 0.0
        while number < 1 or time.monotonic() - started + round_s <= budget_s:
            progress.step(f"round {number + 1}")
            round_started = time.monotonic()
            played += play_round(arena, workloads, number, slice_s)
            round_s, number = time.monotonic() - round_started, number + 1
    return played


def open_loops(workload: Workload, seconds: int) -> list[OpenLoop]:
    """Run the open loop on a fresh server several times."""
    progress = Lines()
    with open_scratch_arena(embedded(), (OPEN_LOOP,), progress, is_isolated=True) as arena:
        arena.restore([OPEN_LOOP], [0], workload.data_set)
        with arena.arms([OPEN_LOOP], [0], workload.data_set) as (arm,):
            progress.step(f"{CONNECTIONS} connections")
            return [open_loop(arena, arm, workload, seconds) for _ in range(OPEN_LOOP_RUNS)]


def show(found: Sequence[Finding], loops: Sequence[OpenLoop]) -> None:
    """Print the table."""
    print(f"\n{CLIENTS} clients; CPU per transaction, driver / original, {LEVEL:.0%} intervals")
    print(f"{'workload':20} {'original':9} {'side':7} {'rounds':>6} {'ratio':>6} {'interval':>16}  verdict")
    for each in found:
        bounds = "-" if each.low is None else f"{each.low:.3f} … {each.high:.3f}"
        side = each.metric.partition("_")[0]
        print(
            f"{each.workload:20} {each.original:9} {side:7} {each.rounds:6} {each.ratio:6.3f} {bounds:>16}  "
            f"{each.verdict}"
        )
    print(f"\n{CONNECTIONS} connections, open loop, {RATE}/s, pgbench-select, {len(loops)} runs (median):")
    print(f"  schedule lag p99 {median(loop.lag_ms_p99 for loop in loops):.2f} ms")
    print(f"  peak memory      {median(loop.peak_memory_bytes for loop in loops) / 2**20:.1f} MiB")


def main() -> None:
    """Compare, then run the open loop, then print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", default="10m", help="for the comparisons; the rest takes a minute")
    parser.add_argument("--slice", type=int, default=3, help="seconds per turn")
    parser.add_argument("--json", type=Path, help="where to write findings and single turns")
    asked = parser.parse_args()
    workloads = small_workloads()
    played = compare(workloads, parse_duration_s(asked.budget), asked.slice)
    loops = open_loops(workloads["pgbench-select"], OPEN_LOOP_S)
    found = findings(played)
    show(found, loops)
    if asked.json:
        document = {
            "findings": [asdict(each) for each in found],
            "open_loop": [asdict(loop) for loop in loops],
            "turns": [asdict(turns) for turns in played],
        }
        asked.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
