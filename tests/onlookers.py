"""Onlookers of a fleet for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pgdyno.model.fleets.trial_store import TrialStore


@dataclass
class Onlooker:
    """Does something at every turn, and keeps what was said."""

    do: Callable[[], None] = lambda: None
    said: list[str] = field(default_factory=list)

    def look(self, store: TrialStore) -> None:
        """Do it."""
        self.do()

    def say(self, what: str) -> None:
        """Keep it."""
        self.said.append(what)
