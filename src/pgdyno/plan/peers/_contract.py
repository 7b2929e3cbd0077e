"""The contract of peers: one file adds one, ``PEER``, a pure function from facts to settings.

Each is the tool's own answer, faithfully and whole, including values that pgdyno would not choose; what a
server under test may not be given is taken out afterwards, by ``comparable.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, TypeAlias

from pgdyno.base.facts import Unknown

Storage: TypeAlias = Literal["hdd", "ssd", "san", "nvme"]

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


class Purpose(Enum):
    """The kind of load that a server is configured for, as far as a tool distinguishes any."""

    TRANSACTIONS = "transaction processing"
    WAREHOUSE = "data warehouses"


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
    purpose: Purpose = Purpose.TRANSACTIONS


@dataclass(frozen=True)
class Peer:
    """A tool, or a service, and its rule.

    ``settings`` returns Unknown with the tool's reason where it has no answer. ``left_out`` says which parts
    of its answer are not in the rule. ``kinds`` are the tool's own words for what it is asked for; none: its
    answer is the same for every load.
    """

    title: str
    source: str  # with version and date
    settings: Callable[[PeerFacts], Mapping[str, str] | Unknown]
    left_out: str = ""
    kinds: Mapping[Purpose, str] = field(default_factory=dict)

    def title_for(self, purpose: Purpose) -> str:
        """Return the title with the tool's own word for this kind of load, if it has one."""
        kind = self.kinds.get(purpose)
        return self.title if kind is None else f"{self.title}, {kind}"
