"""The contract of every format in this package.

A format file has ``FORMAT``, its metadata, and ``render(plan, server) -> str``, which is pure. The text
ends with a newline. For every setting it gives the former value, the reason and the undo, where the format
allows comments. Changes that the format cannot express are listed with the place where they belong.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pgdyno.base.text import counted
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import HOST_KINDS, SETTING, Effect, Plan, PlanLine
from pgdyno.postgres.server import Server


@dataclass(frozen=True)
class Format:
    """A format's metadata; ``name`` is the value of ``--format`` and the name of the format's module."""

    name: str
    title: str


class FormatModule(Protocol):
    """A format file, as ``load`` returns it."""

    FORMAT: Format

    def render(self, plan: Plan, server: Server) -> str:
        """Return the plan in this format."""
        ...


def setting_lines(plan: Plan) -> tuple[PlanLine, ...]:
    """Return the lines that are PostgreSQL settings."""
    return tuple(line for line in plan.lines if line.change.kind == SETTING)


def host_lines(plan: Plan) -> tuple[PlanLine, ...]:
    """Return the lines that change the machine through kernel files."""
    return tuple(line for line in plan.lines if line.change.kind in HOST_KINDS)


def restart_settings(plan: Plan) -> tuple[str, ...]:
    """Return the settings that take effect only when the server is restarted."""
    return tuple(line.change.key for line in setting_lines(plan) if line.change.effect is Effect.RESTART)


def summary(plan: Plan, server: Server) -> str:
    """Return one sentence: the number of settings, the server's version, and those that need a restart."""
    restarts = restart_settings(plan)
    restarting = f"{', '.join(restarts)} {'needs' if len(restarts) == 1 else 'need'} a restart"
    return (
        f"{counted(len(setting_lines(plan)), 'setting')} for PostgreSQL {server.version}; "
        f"{restarting if restarts else 'none needs a restart'}"
    )


def explanation(line: PlanLine, undo: str | None = None) -> tuple[str, ...]:
    """Return the facts about a change that a DBA needs, one per line.

    ``undo`` is the undo for an installed file of this format; the default, the plan's undo, assumes that
    pgdyno applied the change.
    """
    change = line.change
    return (
        f"{display_name(change.key)}: {change.current or 'not set'} → {change.value} ({change.effect})",
        f"why: {line.reason}",
        f"source: {line.evidence}",
        f"undo: {line.undo if undo is None else undo}",
    )


WIDTH = 100


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of one remark. Line breaks become spaces, so that no text escapes its comment."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return textwrap.wrap(
        printable, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def comment(text: str, mark: str = "#", *, indent: str = "") -> str:
    """Return one remark as comment lines, each beginning with ``mark``."""
    lines = wrapped(text, WIDTH - len(indent) - len(mark) - 1)
    # A trailing backslash continues a line in udev rules, even in a comment.
    ended = (f"{line} ." if line.endswith("\\") else line for line in lines)
    return "\n".join(f"{indent}{mark} {line}" for line in ended)


def comments(texts: Iterable[str], mark: str = "#", *, indent: str = "") -> str:
    """Return several remarks, each starting on a new line."""
    return "\n".join(comment(text, mark, indent=indent) for text in texts)


def joined(*blocks: str) -> str:
    """Return the nonempty blocks, separated by empty lines."""
    return "\n\n".join(filter(None, blocks)) + "\n"
