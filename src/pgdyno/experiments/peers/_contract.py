"""The contract of peers: one file adds one, ``PEER``, a pure function from facts to settings.

Each is the tool's own answer, faithfully and whole, including values that pgdyno would not choose; what a
server under test may not be given is taken out afterwards, by ``comparable.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pgdyno.model.facts import Unknown

Storage: TypeAlias = Literal["hdd", "ssd", "san", "nvme"]

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class PeerFacts:
    """The facts that the tools ask for. ``connections`` and ``disk_bytes`` None: not stated.

    Most of them then have a number of connections of their own.
    """

    memory_bytes: int
    cpus: int
    major: int  # of the server
    storage: Storage
    connections: int | None = None
    disk_bytes: int | None = None


@dataclass(frozen=True)
class Peer:
    """A tool, or a service, and its rule.

    ``settings`` returns Unknown with the tool's reason where it has no answer. ``left_out`` says which parts
    of its answer are not in the rule.
    """

    title: str
    source: str  # with version and date
    settings: Callable[[PeerFacts], Mapping[str, str] | Unknown]
    left_out: str = ""
