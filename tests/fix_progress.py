"""Progress that remembers what it was told."""

from __future__ import annotations


class Remembered:
    """Keeps every announcement, and every report of seconds done and expected."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.advances: list[tuple[float, float]] = []

    def step(self, message: str) -> None:
        self.steps.append(message)

    def advance(self, done_s: float, total_s: float) -> None:
        self.advances.append((done_s, total_s))
