"""Pauses of sessions between two transactions, as looks at them in a row show them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SeenPauses:
    """The pauses that ended between one look and the next: a session was idle, and then no more, or again.

    Which pauses these are does not depend on how long they are.
    """

    seconds: list[float] = field(default_factory=list)
    _idle_since: dict[int, float] = field(default_factory=dict)

    def begin_row(self) -> None:
        """Begin looks in a row: nothing is known of the time before."""
        self._idle_since.clear()

    def take(
        self, session: int, idle_since_s: float | None, began_s: float | None, between_looks_s: float
    ) -> None:
        """Take a session that is idle since a time, or in a transaction that has begun at one, of one clock.

        A pause that is no longer than the time between two looks may be several transactions: it counts as 0.
        """
        ended_s = idle_since_s if began_s is None else began_s  # a transaction was too short to be seen
        if ended_s is None:
            return
        before_s = self._idle_since.pop(session, None)
        if idle_since_s is not None:
            self._idle_since[session] = idle_since_s
        if before_s is not None and ended_s > before_s:
            pause_s = ended_s - before_s
            self.seconds.append(pause_s if pause_s > between_looks_s else 0.0)
