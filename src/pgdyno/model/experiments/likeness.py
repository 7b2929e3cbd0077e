"""The similarity of a replay to the original workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_LIKENESS = 0.9
"""Below this, a replay only approximates the workload."""
LEAST_CALLS = 0.5
"""Of the original's calls. With fewer, a replay is a different workload and is not measured. Arbitrary."""


@dataclass(frozen=True)
class StatementLikeness:
    """One statement: its share of each quantity, in the original and in the replay.

    ``original_ms`` and ``replay_ms`` are mean times of a call; None: it was not called.
    """

    name: str
    original: Mapping[str, float]
    replay: Mapping[str, float]
    original_ms: float
    replay_ms: float | None


@dataclass(frozen=True)
class Likeness:
    """The overlap of the original's and the replay's shares, by quantity, from 0 to 1.

    Statements that are not replayed contribute nothing.
    """

    by_quantity: Mapping[str, float]
    statements: tuple[StatementLikeness, ...]

    @property
    def least(self) -> float:
        """The likeness of the least similar quantity, as a single number."""
        return min(self.by_quantity.values())

    @property
    def is_another_workload(self) -> bool:
        """Whether most of the original's calls are missing."""
        return self.by_quantity.get("calls", 1.0) < LEAST_CALLS
