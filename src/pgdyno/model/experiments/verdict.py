"""The verdict on one metric of one workload: an effect, its interval, and a decision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Decision(StrEnum):
    """The four possible decisions. Equivalence has to be shown, not assumed."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval for a ratio variant/baseline; 1.0 = no change. ``level`` e.g. 0.95."""

    low: float
    point: float
    high: float
    level: float

    @property
    def half_width(self) -> float:
        """Half the width in relative terms, e.g. 0.01 for ±1 %."""
        return math.sqrt(self.high / self.low) - 1.0


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Standard deviations of the log-ratio: between started instances, and between blocks of one instance."""

    between_rounds: float
    within_rounds: float


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The test whether the effect is within ±``margin`` (0.02 = 2 %); ``p_value`` is that of TOST.

    ``interval`` lies within the margin if and only if the test passes: for two one-sided tests at 5 % it is
    the 90 % interval.
    """

    margin: float
    p_value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on ``metric`` of ``workload``: ``variant`` against ``baseline``.

    ``effect`` is the ratio variant/baseline. ``mde`` is the smallest relative change that this experiment
    would have found with 80 % power. ``p_adjusted`` is Holm's over the experiment's workloads. ``checks``
    are robustness checks (BCa bootstrap, signed rank) by name, in words. ``is_withheld``: the data do not
    allow a verdict (too few rounds, drift), regardless of the interval. ``equivalence`` is None without an
    interval.
    """

    workload: str
    metric: str
    variant: str
    baseline: str
    decision: Decision
    reason: str
    effect: float | None
    interval: Interval | None
    mde: float | None
    p_value: float | None
    p_adjusted: float | None
    rounds: int
    blocks: int
    void_blocks: int
    components: VarianceComponents | None = None
    equivalence: Equivalence | None = None
    checks: Mapping[str, str] = field(default_factory=dict)
    is_withheld: bool = False


AT_LOAD = "accelerate-at-load"
"""The name of experiments at a fixed rate: they belong to another one and never count as the newest."""


@dataclass(frozen=True)
class LatencyAtLoad:
    """One latency metric in ms, of the baseline and the plan; their ratio is None with too few rounds."""

    metric: str
    baseline_ms: float
    plan_ms: float
    ratio: Interval | None


@dataclass(frozen=True)
class AtLoad:
    """Measurements of one workload at ``rate_tps`` transactions per second on both servers.

    ``share`` is that rate as a share of the baseline's throughput in a closed loop. ``experiment_id`` is the
    experiment with the blocks. Latencies count from the intended start: they include waiting for a busy
    server.
    """

    workload: str
    rate_tps: float
    share: float
    experiment_id: str
    latencies: tuple[LatencyAtLoad, ...]
