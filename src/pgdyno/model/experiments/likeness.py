"""The similarity of a replay to the original workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.base import numbers

LEAST_LIKENESS = 0.9
"""Below this, a replay only approximates the workload."""
LEAST_MEASURED = 0.7
"""Below this, a replay is a different workload, and is measured only with --unlike. Arbitrary."""
SESSIONS = "sessions"
_HARDLY_ASSUMED = 0.005
_OF_CONCURRENCY = ("time", "blocks", "WAL records")


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
    """The likeness of the original and the replay, by quantity, from 0 to 1.

    For quantities of statements it is the overlap of their shares; statements that are not replayed
    contribute nothing. ``of_transactions`` has the original's and the replay's value of the other quantities:
    shares of transactions, and numbers of active sessions. ``assumed_share`` is the share of the workload's
    transactions with assumed statements: the counts cannot show whether these are right.
    """

    by_quantity: Mapping[str, float]
    statements: tuple[StatementLikeness, ...]
    of_transactions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    assumed_share: float = 0.0

    @property
    def least(self) -> float:
        """The likeness of the least similar quantity, as a single number."""
        return min(self.by_quantity.values())

    @property
    def is_another_workload(self) -> bool:
        """Whether a quantity differs too much.

        The number of sessions is the user's choice. With another one, the shares of time, blocks and WAL
        records differ too.
        """
        return min(self._deciding.values()) < LEAST_MEASURED

    @property
    def most_different(self) -> str:
        """The least similar quantity; of a different workload, the one that makes it different."""
        values = self._deciding if self.is_another_workload else self.by_quantity
        return min(values, key=values.__getitem__)

    @property
    def _deciding(self) -> Mapping[str, float]:
        are_others = self.by_quantity.get(SESSIONS, 1.0) < LEAST_LIKENESS
        chosen = {SESSIONS, *(_OF_CONCURRENCY if are_others else ())}
        return {name: value for name, value in self.by_quantity.items() if name not in chosen}


def likeness_words(found: Likeness) -> str:
    """Return the smallest likeness, that of each quantity, and a verdict.

    Quantities of transactions are shown if they differ.
    """
    least = found.most_different
    values = ", ".join(
        f"{quantity} {value:.2f}"
        for quantity, value in found.by_quantity.items()
        if quantity not in found.of_transactions or round(value, 2) < 1
    )
    verdict = "this is the workload"
    if found.least < LEAST_LIKENESS:
        where = _difference(found, least)
        verdict = f"this is a similar workload, which differs most in {least}{where}"
        if found.is_another_workload:
            verdict = f"this is not the workload; it differs most in {least}{where}"
    if found.assumed_share >= _HARDLY_ASSUMED:
        share = numbers.share(found.assumed_share)
        verdict += f". Which statements form {share} of its transactions is partly assumed: see its notes"
    return f"Likeness {found.least:.2f} ({values}): {verdict}"


def _difference(found: Likeness, quantity: str) -> str:
    """Return a phrase on the original's and the replay's values of a quantity."""
    if quantity not in found.of_transactions:
        return _most_different(found, quantity)
    original, replay = found.of_transactions[quantity]
    if quantity == SESSIONS:
        return f" ({original:.0f} → {replay:.0f})"
    return f" ({original:.1%} → {replay:.1%} of the transactions)"


def _most_different(found: Likeness, quantity: str) -> str:
    """Return a phrase on the statement with the largest difference in its share of a quantity."""

    def distance(one: StatementLikeness) -> float:
        return abs(one.original[quantity] - one.replay[quantity])

    if not found.statements:
        return ""
    one = max(found.statements, key=distance)
    return f", above all for {one.name} (share {one.original[quantity]:.1%} → {one.replay[quantity]:.1%})"
