"""The subject of a plan: a server, its host, and the resources available to it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.host import Host
from pgdyno.host.page_compression import PageCompression
from pgdyno.plan.engine.resources import Resources
from pgdyno.plan.inspection.inspect import Inspection
from pgdyno.postgres.commit_grouping import CommitGrouping
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import WorkloadStatements


@dataclass(frozen=True)
class Subject:
    """The subject of a plan: a server, its host, and the resources available to it.

    ``statements`` are those of the workloads, planned on a scratch server; None: it is somebody's own.
    ``pages`` is what was found of a scratch server's data, which are gone when the plan is made, ``commits``
    how commits share flushes there.
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
