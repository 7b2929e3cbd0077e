"""Transactions as the generator on one host has logged them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostLog:
    """An arm's transactions by the clock of a host, a line each.

    ``moves`` make that clock the server's, turn by turn: from when on, by the host's clock, and how many
    ns are added then. Nothing is added where there are none.
    """

    text: bytes
    moves: tuple[tuple[int, int], ...] = ()
