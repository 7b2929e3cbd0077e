"""One turn of an arm, as load hosts have had it, each by a clock of its own. Pure.

All are told at once to begin after the same time, and the turn is as long for each: what a host counts from
the beginning of its turn is of the same part of it as what another does. So no two clocks are compared. By
ours the turn begins at the earliest time at which a host could begin it; then all rest, by ours, before the
next one begins. How far apart hosts began is bounded by how long words took: each host was told before it
waited, and its words came back after its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.model.experiments.experiment import Slice

_US = 1000  # logs have whole microseconds


@dataclass(frozen=True)
class HostTurn:
    """A host's turn by its own clock. ``heard_ns`` is when its words came, by ours."""

    turn: Slice
    heard_ns: int

    @property
    def occupied_ns(self) -> int:
        """How long transactions were under way."""
        return (self.turn.drained_ns or self.turn.end_ns) - self.turn.start_ns


def joined_turn(turns: Sequence[HostTurn], earliest_ns: int) -> Slice:
    """Return a turn of all hosts by our clock, which is drained when the last host has rested.

    Raises: ValueError if turns are not equally long.
    """
    first, *others = (one.turn.end_ns - one.turn.start_ns for one in turns)
    if any(length != first for length in others):
        raise ValueError("it tells of a turn that is not as long as that of other hosts")
    return replace(
        turns[0].turn,
        start_ns=earliest_ns,
        end_ns=earliest_ns + first,
        drained_ns=earliest_ns + max(one.occupied_ns for one in turns),
        apart_ns=max(0, *(one.heard_ns - earliest_ns - one.occupied_ns for one in turns)) if others else None,
    )


def moves(theirs: Sequence[int], ours: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return how a host's clock becomes ours, turn by turn, from when turns began by both."""
    return tuple(
        (began // _US * _US, (at // _US - began // _US) * _US) for began, at in zip(theirs, ours, strict=True)
    )
