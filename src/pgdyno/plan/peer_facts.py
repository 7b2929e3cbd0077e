"""The facts about a server that other tools' rules ask for."""

from __future__ import annotations

import shutil

from pgdyno.plan.engine.resources import Resources
from pgdyno.plan.peers._contract import PeerFacts
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.server import Server


def peer_facts(server: Server, resources: Resources) -> PeerFacts | None:
    """Return the facts; None where memory or CPUs are unknown. A disk of an unknown kind is said to be SSD.

    Whoever asks these tools has to name a kind, and most machines have that one.
    """
    memory_bytes, cpus = resources.memory_bytes.or_none(), resources.cpu_count.or_none()
    storage = resources.storage.or_none()
    if memory_bytes is None or cpus is None:
        return None
    return PeerFacts(
        memory_bytes,
        max(1, int(cpus)),
        server.major,
        "ssd" if storage is None else storage.value,
        disk_bytes=shutil.disk_usage(workspace().root).total,
    )
