"""The load hosts that an experiment had its load from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoadHosts:
    """Load hosts from a round on, which is counted from 0; by their names in hosts.toml."""

    first_round: int
    names: tuple[str, ...]
