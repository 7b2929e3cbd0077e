"""Makes the plan for a running server and the request to apply it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.app import wiring
from pgdyno.app.apply import ApplyRequest
from pgdyno.app.attached import bin_directory_of
from pgdyno.app.inspect import inspect_dsn
from pgdyno.levers.planner import PlanRequest, make_plan
from pgdyno.levers.resources import Figures
from pgdyno.model.errors import ServerError
from pgdyno.model.facts import Unknown


@dataclass(frozen=True)
class ApplyAdvice:
    """Which server, what its owner states about it, and what is allowed."""

    dsn: str | None
    figures: Figures
    allow_restart: bool
    is_standby_order_kept: bool = False


def apply_request(advice: ApplyAdvice) -> ApplyRequest:
    """Inspect the server, plan for it, and return what to apply.

    The start check on a scratch directory is left out where the server's programs are out of reach; values
    are then checked against the live ``pg_settings`` only.
    Raises: ConnectionFailedError; MemoryProofError if no plan fits.
    """
    found = inspect_dsn(advice.dsn, advice.figures)
    if isinstance(found.inspected, Unknown):
        raise ServerError("the server could not be inspected", detail=found.inspected.reason)
    host = None if isinstance(found.host, Unknown) else found.host
    plan = make_plan(host, found.inspected.server, PlanRequest(figures=advice.figures))
    postmaster_pid = found.inspected.postmaster_pid.or_none()
    programs = None if postmaster_pid is None else bin_directory_of(postmaster_pid, found.inspected.target)
    return ApplyRequest(
        plan,
        allow_restart=advice.allow_restart,
        is_standby_order_kept=advice.is_standby_order_kept,
        start_check=wiring.start_check(programs),
    )
