"""The parts of a build that reach its host, the network or servers. Tests give parts of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.app.building.fetch import Fetched, fetch
from pgdyno.app.building.training import train
from pgdyno.app.building.verifying.verification import Candidate, verify
from pgdyno.app.local_machine import available_memory_bytes
from pgdyno.model.ports import Progress
from pgdyno.server.process.installation import Installation
from pgdyno.server.process.workspace import Workspace
from pgdyno.toolchain.optimise.bolt import Bolt, find_bolt
from pgdyno.toolchain.product.manifest import Verified
from pgdyno.toolchain.run.stages import Watch


@dataclass(frozen=True)
class BuildParts:
    """Functions that a build calls, in the order in which it does."""

    find_bolt: Callable[[], Bolt | None] = find_bolt
    fetch: Callable[[str, Workspace, Progress], Fetched] = fetch
    available_memory_bytes: Callable[[], int] = available_memory_bytes
    train: Callable[[Installation, Installation, Mapping[str, str], Sequence[str], Progress, Watch], None] = (
        train
    )
    verify: Callable[[Candidate, Workspace, Progress, Watch], Verified] = verify


PARTS = BuildParts()
