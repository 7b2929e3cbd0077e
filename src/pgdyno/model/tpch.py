"""What an experiment with a workload like TPC-H has besides its blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.model.query_plan import PlanNode

POWER, THROUGHPUT = "power", "throughput"
REFRESHES = ("rf1", "rf2")
DISCLAIMER = "TPC-H-like: not a TPC-H result, and not comparable with published TPC-H results"


@dataclass(frozen=True)
class TpchFacts:
    """The size, what the workloads are called in tables, and the plans of the queries.

    ``names`` are by workload: "q1" … "q22", "rf1", "rf2", "power", "throughput". ``plans`` are by variant and
    query, with the parameters of the validation run.
    """

    thousandths: int  # the scale
    streams: int  # of the throughput run
    names: Mapping[str, str]
    plans: Mapping[str, Mapping[str, PlanNode]] = field(default_factory=dict)

    @property
    def scale(self) -> str:
        """The scale as people write it."""
        return f"{self.thousandths / 1000:g}"
