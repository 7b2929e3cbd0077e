"""Additional facts of an experiment with a TPC-H-like workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.postgres.plan_document import PlanNode

PREFIX = "tpch-"  # of the workloads' names
POWER_RUN, THROUGHPUT_RUN = "power", "throughput"
TPCH_RUNS = {POWER_RUN: "power run", THROUGHPUT_RUN: "throughput run"}
"""What the runs are called, by their short names."""
REFRESHES = ("rf1", "rf2")
DISCLAIMER = "TPC-H-like: not a TPC-H result, and not comparable with published TPC-H results"


@dataclass(frozen=True)
class TpchFacts:
    """The size, and the plans of the queries by variant and query, with the values of the validation run."""

    thousandths: int  # the scale
    streams: int  # of the throughput run
    plans: Mapping[str, Mapping[str, PlanNode]] = field(default_factory=dict)

    @property
    def scale(self) -> str:
        """The scale as people write it."""
        return scale_text(self.thousandths)


def scale_text(thousandths: int) -> str:
    """Return a scale in thousandths as people write it: 100 is "0.1"."""
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")
