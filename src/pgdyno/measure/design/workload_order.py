"""The order of workloads in a round. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from numpy.random import Generator as Random

from pgdyno.model.experiments.workload import Workload


def workloads_by_server(workloads: Sequence[Workload]) -> list[list[Workload]]:
    """Group workloads that can share started servers, read-only ones first."""

    def servers(workload: Workload) -> tuple[str, int]:
        return workload.data_set.key, workload.server_memory_bytes or 0

    ordered = sorted(workloads, key=lambda w: (*servers(w), not w.is_read_only))
    return [list(group) for _, group in groupby(ordered, key=servers)]


def in_random_order(workloads: Sequence[Workload], random: Random) -> list[Workload]:
    """Shuffle the cells of a grid, so that time is not taken for a size's or the clients' effect.

    Those that only read still come first.
    """
    if not all(workload.cell for workload in workloads):
        return list(workloads)
    shuffled = [workloads[index] for index in random.permutation(len(workloads))]
    return sorted(shuffled, key=lambda workload: not workload.is_read_only)
