"""How well a simulation repeats: differences of sessions of several lengths, twice from the same data.

Each time, a fresh server under callgrind executes a session of each length, after two that fill its caches.
What a transaction takes is the difference of a longer session and a shorter one, by their number of
transactions. All pairs of lengths are shown, each with its figure per run, and how far the runs are apart.
Time is not measured: whoever else is busy hardly matters.

    python -m bench.repeated_simulation sysbench-read-only --lengths 20,100,200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from bench.likeness import Quiet

from pgdyno.host.files.tree import Tree
from pgdyno.host.machine.cpu import read_caches
from pgdyno.host.tracing.valgrind import find_valgrind
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import parse_variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.profile.callgrind import spread
from pgdyno.profile.reading.simulate import for_valgrind
from pgdyno.profile.reading.simulated_sessions import session_counts
from pgdyno.profile.simulated_caches import simulated_caches
from pgdyno.workload.workload_choice import find_workloads

_RUNS = 2
_EVENTS = {
    "instructions": ("Ir",),
    "L1i misses": ("I1mr",),
    "L1d misses": ("D1mr", "D1mw"),
    "L2 misses": ("ILmr", "DLmr", "DLmw"),
    "mispredictions": ("Bcm", "Bim"),
}
Counts = Mapping[int, Mapping[str, int]]
"""A run's totals by the length of a session."""


def main() -> None:
    """Print the table of a workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workload")
    parser.add_argument("--scale", type=int)
    parser.add_argument("--lengths", default="20,100,200")
    asked = parser.parse_args()
    lengths = [int(one) for one in asked.lengths.split(",")]
    [workload] = find_workloads((asked.workload,), (), asked.scale).values()
    runs = [*_runs(workload, lengths)]
    print("| transactions | " + " | ".join(_EVENTS) + " |")
    print("|---|" + "---:|" * len(_EVENTS))
    for shorter, longer in combinations(lengths, 2):
        print(f"| {shorter} and {longer} | " + " | ".join(_cells(runs, shorter, longer)) + " |")


def _runs(workload: Workload, lengths: list[int]) -> Iterator[Counts]:
    """Yield the counts of equal runs, each on a fresh server."""
    plain, valgrind = for_valgrind(parse_variant("default")), find_valgrind()
    if valgrind is None:
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    with open_scratch_arena(embedded(), (plain,), Quiet(), is_isolated=False, is_timed=False) as arena:
        arena.load(plain, workload.data_set)
        directory = arena.loads.scratch / "simulated"
        directory.mkdir(mode=0o700)
        arena.workspace.account.own(directory)
        caches = simulated_caches(read_caches(Tree()))
        under = replace(arena, under=valgrind.simulating(directory, caches.options))
        for _ in range(_RUNS):
            under.restore((plain,), (0,), workload.data_set)
            with under.arms((plain,), (0,), workload.data_set) as [arm]:
                ended = (
                    (count, session_counts(under, arm, workload, 1, count, directory).totals)
                    for count in (lengths[0], lengths[-1], *lengths)
                )
                yield dict(ended)  # of two equal lengths, the later one
            under.discard((plain,), (0,), workload.data_set)


def _cells(runs: list[Counts], shorter: int, longer: int) -> Iterator[str]:
    for events in _EVENTS.values():
        counts = [
            sum(run[longer][one] - run[shorter][one] for one in events) / (longer - shorter) for run in runs
        ]
        yield f"{' and '.join(f'{one:,.0f}' for one in counts)} ({spread(counts):.2%})"


if __name__ == "__main__":
    main()
