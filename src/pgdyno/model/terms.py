"""What is asked of a plan before it is said to pay, and what the variants are called that show it."""

from __future__ import annotations

from dataclasses import dataclass

PLAN = "plan"
"""The variant with the whole plan."""

WITHOUT = "without-"
"""What the name of the plan without one of its layers begins with; that layer follows."""


@dataclass(frozen=True)
class Terms:
    """What is asked of a plan, as shares: 0.05 = 5 %.

    ``min_gain`` is the gain of throughput that makes the change worth while; no workload may have lost more
    than ``max_loss`` of it, and none's slowest transactions may take longer by more than ``max_tail_loss``.
    """

    min_gain: float = 0.0
    max_loss: float = 0.05
    max_tail_loss: float = 0.10
