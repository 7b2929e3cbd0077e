"""``pgdyno advise``: possible changes of a server, with reasons. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pgdyno import formats
from pgdyno.levers.engine.planner import PlanRequest, make_plan
from pgdyno.model.errors import UsageError
from pgdyno.model.facts import Fact
from pgdyno.model.hosts.host import Host
from pgdyno.model.plans.plan import Plan
from pgdyno.model.servers.server import Server
from pgdyno.report.plain.plan_text import WIDTH, plan_text

TEXT = "text"
_OF_APPLY = (TEXT, "json")
"""Forms that say what apply would do. Others are files that people install, TuneD's profile among them."""


@dataclass(frozen=True)
class Advice:
    """A plan, and the plan written down as asked."""

    plan: Plan
    text: str


@dataclass(frozen=True)
class AdviseRequest:
    """A request for advice, and its output format; ``format_name`` is ``text`` or a format's name."""

    plan: PlanRequest = field(default_factory=PlanRequest)
    format_name: str = TEXT
    width: int = WIDTH  # columns of the terminal, for ``text``


def format_names() -> tuple[str, ...]:
    """Return the values of ``--format``."""
    return (TEXT, *formats.names())


def advise(host: Host | None, server: Server, request: AdviseRequest) -> Advice:
    """Make the plan for one server and write it down.

    Raises: UsageError for an unknown format or contradictory figures; MemoryProofError if no plan fits.
    """
    if request.format_name not in format_names():
        raise UsageError(
            f'unknown format "{request.format_name}"', hint=f"use one of {', '.join(format_names())}"
        )
    if host is not None and request.format_name not in _OF_APPLY:
        host = replace(host, owners=Fact((), "not asked for"))
    plan = make_plan(host, server, request.plan)
    if request.format_name == TEXT:
        return Advice(plan, plan_text(plan, width=request.width))
    return Advice(plan, formats.load(request.format_name).render(plan, server))
