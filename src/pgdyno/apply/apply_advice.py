"""Make the plan for a running server, and the request to apply it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.apply.apply_plan import ApplyRequest
from pgdyno.base.errors import PrivilegeError, ServerError
from pgdyno.base.facts import Unknown
from pgdyno.model.plans.plan import Layer
from pgdyno.plan.engine.durability import check_found
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.resources import Figures
from pgdyno.plan.inspection.inspect import inspect_dsn
from pgdyno.plan.inspection.server_programs import probe_of, start_check_of
from pgdyno.postgres.process.local_machine import may_change_host


@dataclass(frozen=True)
class ApplyAdvice:
    """A server, its owner's statements about it, and permissions."""

    dsn: str | None
    figures: Figures
    allow_restart: bool
    is_standby_order_kept: bool = False
    layers: tuple[Layer, ...] = (Layer.APPLICATION,)
    is_persisted: bool = False
    levers: tuple[str, ...] = ()  # only these; empty: all levers of the layers
    with_unmeasured: bool = False


def apply_request(advice: ApplyAdvice) -> ApplyRequest:
    """Inspect the server, plan for it, and return the request to apply the plan.

    Without access to the server's programs there is no start check on a scratch directory; values are then
    checked only against the live ``pg_settings``.
    Raises: ConnectionFailedError; DurabilityError if the server may lose data with its present settings;
    MemoryProofError if no plan fits; PrivilegeError if another user than root wants to persist changes.
    """
    if advice.is_persisted and not may_change_host():
        raise PrivilegeError(
            "only root may change the machine's boot configuration",
            hint="run pgdyno as root, or omit --persist",
        )
    found = inspect_dsn(advice.dsn, advice.figures)
    if isinstance(found.inspected, Unknown):
        raise ServerError("the server could not be inspected", detail=found.inspected.reason)
    check_found(found.inspected.server, found.inspected.target)
    host = None if isinstance(found.host, Unknown) else found.host
    server = found.inspected.server
    plan = make_plan(
        host,
        server,
        PlanRequest(
            advice.figures,
            advice.layers,
            advice.levers,
            probe=probe_of(found.inspected),
            may_change_host=may_change_host(),
            with_unmeasured=advice.with_unmeasured,
        ),
    )
    return ApplyRequest(
        plan,
        is_persisted=advice.is_persisted,
        allow_restart=advice.allow_restart,
        is_standby_order_kept=advice.is_standby_order_kept,
        start_check=start_check_of(found.inspected),
        planned_on=found.inspected.target,
    )
