"""Inspects a scratch server of the user's kind on the workloads' data, and plans for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.app import wiring
from pgdyno.app.inspect import Inspection, inspect_dsn
from pgdyno.app.measure import Conditions
from pgdyno.experiments.pgtune import PeerSettings, accepted_by, pgtune_settings
from pgdyno.levers.planner import PlanRequest, make_plan
from pgdyno.levers.resources import Resources
from pgdyno.model.errors import ServerError
from pgdyno.model.facts import Unknown
from pgdyno.model.host import Host
from pgdyno.model.plan import Plan
from pgdyno.model.ports import Progress
from pgdyno.model.server import Server
from pgdyno.model.variant import Variant
from pgdyno.studies._contract import StudyContext

PLAN, PGTUNE = "plan", "pgtune"


@dataclass(frozen=True)
class Planned:
    """The facts, the plan made from them, and what studies need to know of both."""

    host: Host
    server: Server
    plan: Plan
    study_context: StudyContext


def plan_for(base: Variant, conditions: Conditions, request: PlanRequest, progress: Progress) -> Planned:
    """Start ``base`` on the workloads' largest data set, look at it and its host, and plan.

    Raises: MemoryProofError if no plan fits, ServerError if the scratch server cannot be inspected.
    """
    host, server, resources = _inspect(base, conditions, request, progress)
    plan = make_plan(host, server, request)
    configurations: dict[str, Mapping[str, str]] = {PLAN: plan.settings}
    notes: tuple[str, ...] = ()
    peer = _pgtune(server, resources)
    if peer is not None:
        configurations[PGTUNE] = peer.settings
        notes = tuple(f"pgtune's {out.name} = {out.value} is left out: {out.reason}" for out in peer.left_out)
    context = StudyContext(base, tuple(conditions.workloads), conditions.design, configurations, notes)
    return Planned(host, server, plan, context)


def _inspect(
    base: Variant, conditions: Conditions, request: PlanRequest, progress: Progress
) -> tuple[Host, Server, Resources]:
    data_set = max((w.data_set for w in conditions.workloads.values()), key=lambda data: data.size_bytes)
    with wiring.open_arena(conditions.installation, progress, is_isolated=False) as arena:
        for workload in conditions.workloads.values():
            arena.data_sets.ensure(workload.data_set)
        progress.step("inspecting the host and the server")
        arena.restore(data_set, 1)
        with arena.arms([base], [0], data_set) as (arm,):
            return _known(inspect_dsn(arm.instance.dsn, request.figures))


def _known(found: Inspection) -> tuple[Host, Server, Resources]:
    for part in (found.host, found.inspected):
        if isinstance(part, Unknown):
            raise ServerError("the scratch server could not be inspected", detail=part.reason)
    assert isinstance(found.host, Host)  # noqa: S101 — checked above
    assert not isinstance(found.inspected, Unknown)  # noqa: S101 — checked above
    return found.host, found.inspected.server, found.inspected.resources


def _pgtune(server: Server, resources: Resources) -> PeerSettings | None:
    """Return pgtune's settings for this host; None where its inputs are unknown."""
    memory_bytes, cpus = resources.memory_bytes.or_none(), resources.cpu_count.or_none()
    storage = resources.storage.or_none()
    if memory_bytes is None or cpus is None:
        return None
    settings = pgtune_settings(
        memory_bytes=memory_bytes,
        cpus=max(1, int(cpus)),
        version_major=server.major,
        storage="ssd" if storage is None else storage.value,
    )
    return accepted_by(server, settings)
