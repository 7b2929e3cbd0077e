"""The subject of a plan: a server, its host, and the resources available to it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.cpu_idling import idling_files
from pgdyno.host.host import Host
from pgdyno.host.probes import PageCompression
from pgdyno.model.plans.plan import Plan
from pgdyno.plan.engine.resources import Resources
from pgdyno.plan.inspection.inspect import Inspection
from pgdyno.plan.peers._contract import PeerFacts
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import CommitGrouping, WorkloadStatements


@dataclass(frozen=True)
class Subject:
    """The subject of a plan: a server, its host, and the resources available to it.

    ``statements`` are those of the workloads, planned on a scratch server; None: not a scratch server.
    ``pages`` describes a scratch server's data, which are deleted before the plan is made. ``commits``
    describes how commits share flushes there.
    """

    host: Host
    server: Server
    resources: Resources
    statements: Fact[tuple[WorkloadStatements, ...]] | None = None
    pages: Fact[PageCompression] | None = None
    commits: Fact[CommitGrouping] | None = None


def subject_of(found: Inspection) -> Subject:
    """Return the inspected subject. Raises: ServerError if the server or its host is unknown."""
    for part in (found.host, found.inspected):
        if isinstance(part, Unknown):
            raise ServerError("the server could not be inspected", detail=part.reason)
    assert isinstance(found.host, Host)  # noqa: S101 — checked above
    assert not isinstance(found.inspected, Unknown)  # noqa: S101 — checked above
    return Subject(found.host, found.inspected.server, found.inspected.resources)


def peer_facts(server: Server, resources: Resources) -> PeerFacts | None:
    """Return the facts; None if memory or CPUs are unknown. A disk of unknown kind counts as an SSD.

    These tools require a kind of disk, and most machines have an SSD.
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


def without_idling(plan: Plan) -> Plan:
    """Return the plan without changes to CPU idle states, which the measurement sets for all servers."""
    return plan.without_keys(idling_files(plan.values))
