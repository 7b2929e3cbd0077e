"""``pgdyno advise``: recommended changes to a server, with reasons. Read-only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.base.facts import Fact
from pgdyno.host.host import Host
from pgdyno.model.plans.plan import Plan
from pgdyno.plan import formats
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.view.plan_text import WIDTH, plan_text
from pgdyno.postgres.server import Server

TEXT = "text"
_OF_APPLY = (TEXT, "json")
"""Formats that describe what apply would do. The others are files to install, such as a TuneD profile."""


@dataclass(frozen=True)
class Advice:
    """A plan, and its text in the requested format.

    ``refused``: the requested plan does not fit into memory; ``plan`` is an alternative that does.
    """

    plan: Plan
    text: str
    refused: MemoryProofError | None = None


@dataclass(frozen=True)
class AdviseRequest:
    """A plan request and its output format; ``format_name`` is ``text`` or the name of a format."""

    plan: PlanRequest = field(default_factory=PlanRequest)
    format_name: str = TEXT
    width: int = WIDTH  # columns of the terminal, for ``text``


def format_names() -> tuple[str, ...]:
    """Return the values of ``--format``."""
    return (TEXT, *formats.names())


def advise(host: Host | None, server: Server, request: AdviseRequest) -> Advice:
    """Make the plan for one server and render it.

    Raises: UsageError for an unknown format or contradictory figures; MemoryProofError if the plan does
    not fit into memory, and the format is a file or no number of connections would fit.
    """
    if request.format_name not in format_names():
        raise UsageError(
            f'unknown format "{request.format_name}"', hint=f"use one of {', '.join(format_names())}"
        )
    if host is not None and request.format_name not in _OF_APPLY:
        host = replace(host, owners=Fact((), "not applicable"))
    try:
        plan = make_plan(host, server, request.plan)
    except MemoryProofError as error:
        return _for_fewer_connections(host, server, request, error)
    if request.format_name == TEXT:
        return Advice(plan, plan_text(plan, width=request.width))
    return Advice(plan, formats.load(request.format_name).render(plan, server))


def _for_fewer_connections(
    host: Host | None, server: Server, request: AdviseRequest, refused: MemoryProofError
) -> Advice:
    """Return a plan that fits. Raises: ``refused`` if no plan fits, or the format is not ``text``."""
    if refused.connections is None or request.format_name != TEXT:
        raise refused
    figures = replace(request.plan.figures, connections=refused.connections)
    plan = make_plan(host, server, replace(request.plan, figures=figures))
    head = f"With --connections {refused.connections} this would fit:\n\n"
    return Advice(plan, head + plan_text(plan, width=request.width), refused)
