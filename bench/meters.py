"""What measuring itself costs: pgdyno's own CPU time for meters and for the clocks read in every slice.

Meters are read at a block's beginning and end, clocks twice per slice for every arm. Both are timed on a
server that four connections have loaded, and related to a block of the default design with two arms.

    python -m bench.meters
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arm import Arm, read_meters
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.meters import load as load_meters
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.workload.workload_choice import find_workloads

ARMS = 2
VARIANT = Variant("default")
WORKLOAD = "pgbench-select"
LABEL = "bench-meters"


def cpu_s(action: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of this process that one call takes."""
    started = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - started) / times


def report(arm: Arm, design: Design) -> None:
    """Print the cost of one reading, and its share of a core over a block."""
    meters = load_meters()
    reading_s = cpu_s(lambda: read_meters(meters, arm), times=200)
    clock = arm.cpu_clock()
    clock_s = cpu_s(clock.read_ns, times=20_000)
    slices = design.block_s / design.slice_s
    meters_share = 2 * ARMS * reading_s / design.block_s
    clocks_share = 2 * ARMS * slices * clock_s / design.block_s
    print(f"all {len(meters)} meters, once: {reading_s * 1e3:.2f} ms of CPU; {meters_share:.2%} of a core")
    print(f"one server's CPU clock, once: {clock_s * 1e6:.1f} us of CPU; {clocks_share:.2%} of a core")
    print(
        f"both: {meters_share + clocks_share:.2%} of a core, in blocks of {design.block_s:g} s, {ARMS} arms"
    )


def main() -> None:
    """Start a server, set it to work and time what reads it."""
    workload, design = find_workloads((WORKLOAD,))[WORKLOAD], Design()
    with open_scratch_arena(embedded(), (VARIANT,), Lines(), is_isolated=True) as arena:
        arena.restore([VARIANT], [0], workload.data_set)
        with arena.arms([VARIANT], [0], workload.data_set) as (arm,):
            with closing(arena.loads.prepare([arm], [LABEL], workload, design, 120.0, [0])) as turns:
                turns.warm_up(0, design.warmup_s)
                report(arm, design)
            arena.loads.forget(LABEL)


if __name__ == "__main__":
    main()
