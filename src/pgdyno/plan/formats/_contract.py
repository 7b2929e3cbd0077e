"""The contract of every format in this package.

A format file has ``FORMAT``, its metadata, and ``render(plan, server) -> str``, which is pure. The text
ends with a newline and says of every setting what it was, why it changes, and how to undo it, as far as
the format has a place for that. What it cannot hold it names, with where that belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import HOST_KINDS, SETTING, Effect, Plan, PlanLine
from pgdyno.postgres.server import Server


@dataclass(frozen=True)
class Format:
    """A format's metadata; ``name`` is the value of ``--format``, and the name of the format's file."""

    name: str
    title: str


class FormatModule(Protocol):
    """A format file, as ``load`` returns it."""

    FORMAT: Format

    def render(self, plan: Plan, server: Server) -> str:
        """Write a plan down."""
        ...


def setting_lines(plan: Plan) -> tuple[PlanLine, ...]:
    """Return the lines that are PostgreSQL settings."""
    return tuple(line for line in plan.lines if line.change.kind == SETTING)


def host_lines(plan: Plan) -> tuple[PlanLine, ...]:
    """Return the lines that change the machine: files of the kernel."""
    return tuple(line for line in plan.lines if line.change.kind in HOST_KINDS)


def restart_settings(plan: Plan) -> tuple[str, ...]:
    """Return the settings that take effect only when the server is restarted."""
    return tuple(line.change.key for line in setting_lines(plan) if line.change.effect is Effect.RESTART)


def summary(plan: Plan, server: Server) -> str:
    """Return one sentence: how many changes, for which server, with which restart."""
    restarts = restart_settings(plan)
    price = f"{', '.join(restarts)} {'takes' if len(restarts) == 1 else 'take'} a restart"
    return (
        f"{counted(len(setting_lines(plan)), 'setting')} for PostgreSQL {server.version}; "
        f"{price if restarts else 'none takes a restart'}"
    )


def counted(count: int, noun: str) -> str:
    """Return an amount: ``1 setting``, ``3 settings``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def explanation(line: PlanLine, undo: str | None = None) -> tuple[str, ...]:
    """Return the facts for a DBA about a value, one per line.

    ``undo`` is how it is undone where this format's text was installed; the plan's own words speak of
    what pgdyno itself applied.
    """
    change = line.change
    return (
        f"{display_name(change.key)}: {change.current or 'not set'} → {change.value} ({change.effect})",
        f"why: {line.reason}",
        f"source: {line.evidence}",
        f"undo: {line.undo if undo is None else undo}",
    )
