"""The load hosts that an experiment had its load from, and the transactions that they logged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoadHosts:
    """Load hosts from a round on, which is counted from 0; by their names in hosts.toml."""

    first_round: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class HostLog:
    """An arm's transactions by the clock of a host, a line each.

    ``moves`` make that clock the server's, turn by turn: from when on, by the host's clock, and how many
    ns are added then. Nothing is added where there are none.
    """

    text: bytes
    moves: tuple[tuple[int, int], ...] = ()
