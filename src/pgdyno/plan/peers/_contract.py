"""The contract of peers: each module has ``PEER``, with a pure function from facts to settings.

Each reproduces the tool's configuration faithfully and completely, including values that pgdyno would not
choose. ``comparable.py`` afterwards removes the settings that must not differ between servers under test.
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
    """The kind of load that a server is configured for; not all tools distinguish kinds."""

    TRANSACTIONS = "transaction processing"
    WAREHOUSE = "data warehouses"


@dataclass(frozen=True)
class PeerFacts:
    """The input of the tools. ``connections`` and ``disk_bytes`` None: not stated.

    Without ``connections``, most tools use a default number.
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
    """A tool or service, and its rule.

    ``settings`` returns Unknown, with the tool's reason, if the tool gives no configuration. ``left_out``
    describes the parts of its configuration that are not in the rule. ``kinds`` are the tool's terms for
    kinds of load; empty: its configuration is the same for every load.
    """

    title: str
    source: str  # with version and date
    settings: Callable[[PeerFacts], Mapping[str, str] | Unknown]
    left_out: str = ""
    kinds: Mapping[Purpose, str] = field(default_factory=dict)

    def title_for(self, purpose: Purpose) -> str:
        """Return the title with the tool's term for this kind of load, if any."""
        kind = self.kinds.get(purpose)
        return self.title if kind is None else f"{self.title}, {kind}"
