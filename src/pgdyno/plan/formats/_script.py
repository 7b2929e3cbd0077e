"""Scripts that apply a plan with a provider's command-line tool: an array of parameters, then the command.

Bash allows comments between the words of an array, so each parameter has its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.model.plans.plan import Effect, Plan, PlanLine
from pgdyno.plan.formats._contract import comments, joined, setting_lines, summary
from pgdyno.plan.formats._expressible import encodable
from pgdyno.plan.formats._targets import Selection, in_base_unit, is_boolean, select, target
from pgdyno.postgres.server import Server

_INDENT = "  "


@dataclass(frozen=True)
class Parameter:
    """One setting in a provider's form."""

    name: str
    value: str
    needs_restart: bool

    def assignment(self) -> str:
        """Return the setting as name=value."""
        return f"{self.name}={self.value}"


@dataclass(frozen=True)
class Provider:
    """Differences between providers."""

    target: str  # name of its data file
    head: tuple[str, ...]  # how to run and undo the script
    arguments: str  # lines that read the script's arguments
    word: Callable[[Parameter], str]  # array element for a parameter
    command: str  # lines that use the array ``parameters``
    on: str = "on"  # the provider's spelling of on
    off: str = "off"  # the provider's spelling of off
    more: str = ""  # last words of the array


def script(plan: Plan, server: Server, provider: Provider) -> str:
    """Return the script. Raises: SettingError for a setting that the server does not know."""
    selection = select(plan, server, target(provider.target))
    taken = setting_lines(selection.plan)
    return joined(
        "#!/usr/bin/env bash\n" + comments([f"pgdyno: {summary(selection.plan, server)}.", *provider.head]),
        f"set -euo pipefail\n{provider.arguments}",
        "parameters=(\n"
        + "\n".join(_listed(line, server, provider, selection) for line in taken)
        + (f"\n{_INDENT}{provider.more}" if provider.more else "")
        + "\n)",
        comments(selection.left_out),
        provider.command,
    )


def parameter(line: PlanLine, server: Server, provider: Provider) -> Parameter:
    """Return a planned setting in a provider's form: a bare number in the server's base unit."""
    change = line.change
    value = as_taken(server, provider, change.key, change.value)
    return Parameter(change.key, value, change.effect is Effect.RESTART)


def as_taken(server: Server, provider: Provider, name: str, value: str) -> str:
    """Return a number in the server's base unit, or a Boolean in the provider's spelling."""
    bare = in_base_unit(server, name, value)
    return {"on": provider.on, "off": provider.off}[bare] if is_boolean(server, name) else bare


def undo_of(line: PlanLine, server: Server, provider: Provider) -> str:
    """Return how to restore the former value, in the provider's form."""
    change = line.change
    if change.current is None:
        return "reset it to the provider's default"
    bare = as_taken(server, provider, change.key, change.current)
    return f"back to {bare}" + (f" ({change.current})" if bare != change.current else "")


def quoted(word: str) -> str:
    """Quote a shell word. Raises: FormatError if it is not encodable in UTF-8, or contains a NUL."""
    return shlex.quote(encodable(word, "a shell script"))


def _listed(line: PlanLine, server: Server, provider: Provider, selection: Selection) -> str:
    remarks = selection.explain(line, undo_of(line, server, provider))
    word = quoted(provider.word(parameter(line, server, provider)))
    return f"{comments(remarks, indent=_INDENT)}\n{_INDENT}{word}"
