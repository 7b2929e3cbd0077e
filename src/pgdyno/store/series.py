"""Raw series as CSV (RFC 4180), for spreadsheets and statistics programs. Rounds and blocks count from 1."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from pgdyno.model.experiment import Block, Slice

SlicesOf = Callable[[str, int, int], Sequence[Slice]]
"""Returns the slices of a block: workload, round, block (both from 0, as ``Block`` has them)."""


def blocks_csv(blocks: Iterable[Block]) -> str:
    """Return a line per block, arm and metric."""
    header = ("workload", "round", "block", "started_ns", "void", "variant", "transactions", "running_s")
    return _csv(
        (*header, "metric", "value"),
        (
            (
                *(block.workload, block.round + 1, block.index + 1, block.started_ns, block.void or ""),
                *(arm.variant, arm.transactions, arm.running_s),
                *(metric, value),
            )
            for block in blocks
            for arm in block.arms
            for metric, value in arm.values.items()
        ),
    )


def slices_csv(blocks: Iterable[Block], slices_of: SlicesOf, variants: Sequence[str]) -> str:
    """Return a line per slice, in the order in which they ran.

    Units: nanoseconds; ``server_cpu_ns_N`` is the CPU time of the N-th variant's server in the slice.
    """
    columns = [f"server_cpu_ns_{number}" for number in range(1, len(variants) + 1)]
    return _csv(
        ("workload", "round", "block", "variant", "start_ns", "end_ns", *columns),
        (
            (
                *(block.workload, block.round + 1, block.index + 1),
                *(variants[one.arm], one.start_ns, one.end_ns),
                *one.server_cpu_ns,
            )
            for block in blocks
            for one in slices_of(block.workload, block.round, block.index)
        ),
    )


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
