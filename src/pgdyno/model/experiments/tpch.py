"""Additional facts of an experiment with a TPC-H-like workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.postgres.plan_document import PlanNode

PREFIX = "tpch-"  # of the workloads' names
POWER_RUN, THROUGHPUT_RUN = "power", "throughput"
TPCH_RUNS = {POWER_RUN: "power run", THROUGHPUT_RUN: "throughput run"}
"""The full names of the runs, by their short names."""
REFRESHES = ("rf1", "rf2")
DISCLAIMER = "TPC-H-like: not a TPC-H result, and not comparable with published TPC-H results"


@dataclass(frozen=True)
class TpchFacts:
    """The size, and the query plans of the validation run, by variant and query."""

    thousandths: int  # the scale
    streams: int  # of the throughput run
    plans: Mapping[str, Mapping[str, PlanNode]] = field(default_factory=dict)

    @property
    def scale(self) -> str:
        """The scale factor as text."""
        return scale_text(self.thousandths)


def scale_text(thousandths: int) -> str:
    """Return a scale factor given in thousandths as text: 100 is "0.1"."""
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")
