"""Counts per slice: transactions and latencies, as stored and passed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pgdyno.measure.blocks.attribution import CountedParts, latencies_us
from pgdyno.measure.blocks.histogram import Histogram
from pgdyno.measure.blocks.histogram_text import encode
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.model.experiments.experiment import Slice


def count_slices(
    slices: Sequence[Slice], arm: int, transactions: Transactions, head_ns: int, *, is_drained: bool
) -> list[Slice]:
    """Return the arm's slices, in order, each with its counts.

    The counts are those of ``attribution.count_arm``.
    """
    own = sorted((one for one in slices if one.arm == arm), key=lambda one: one.start_ns)
    counted = CountedParts.of(slices, arm, head_ns)
    which = counted.which(transactions.completed_ns)
    completed = np.bincount(which[which >= 0], minlength=len(own)).tolist()
    latency_us, of_slice = latencies_us(counted, transactions, is_drained=is_drained)
    return [
        replace(
            one,
            completed=completed[index],
            latencies=encode(Histogram.of(latency_us[of_slice == index])),
        )
        for index, one in enumerate(own)
    ]
