"""How like the original a replay was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_LIKENESS = 0.9
"""Below this, a replay ran something like the workload, and not the workload."""
LEAST_CALLS = 0.5
"""Of the original's calls. With fewer, a replay is another workload: nothing is measured on it. Arbitrary."""


@dataclass(frozen=True)
class StatementLikeness:
    """One statement: its shares in each quantity, in the original and in the replay.

    ``replay_ms`` is the mean time of a call; None: it was not called.
    """

    name: str
    original: Mapping[str, float]
    replay: Mapping[str, float]
    original_ms: float
    replay_ms: float | None


@dataclass(frozen=True)
class Likeness:
    """How much of the original's shares the replay has, by quantity, from 0 to 1.

    Statements that are not replayed lack all of theirs.
    """

    by_quantity: Mapping[str, float]
    statements: tuple[StatementLikeness, ...]

    @property
    def least(self) -> float:
        """The one number: that of the quantity that is least alike."""
        return min(self.by_quantity.values())

    @property
    def is_another_workload(self) -> bool:
        """Whether most of the original's calls are missing."""
        return self.by_quantity.get("calls", 1.0) < LEAST_CALLS
