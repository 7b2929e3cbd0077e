"""Settings that can be changed on managed services, from data files with sources.

``capabilities/<target>.toml`` says what a target is, why the machine below it is out of reach, and per
setting whether it can be changed there and to what. A setting of which no source speaks is written down and
marked as unverified; what cannot be changed is left out, and named with the reason.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from pgdyno.base.errors import SettingError
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import Change, Plan, PlanLine
from pgdyno.plan.formats._contract import explanation, host_lines, setting_lines
from pgdyno.plan.formats._expressible import setting_name
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Server


@dataclass(frozen=True)
class Statement:
    """A source's statement on some settings; ``largest`` and ``values`` are in the server's base unit.

    ``settings`` are names, or beginnings of names with a star at the end; none: all that nobody names.
    """

    can_change: bool
    source: str
    read: date
    settings: tuple[str, ...] = ()
    why: str = ""  # not, or not to everything
    values: tuple[str, ...] = ()  # empty: what the server itself accepts
    largest: int | None = None

    def speaks_of(self, name: str) -> bool:
        """Whether this statement names a setting."""
        return any(
            name.startswith(known[:-1]) if known.endswith("*") else name == known for known in self.settings
        )


@dataclass(frozen=True)
class Target:
    """A place where servers run that others manage."""

    title: str
    machine: str  # why changes of the machine are left out
    statements: tuple[Statement, ...]
    others: Statement | None  # of settings that no statement names; None: nobody says

    def statement_on(self, name: str) -> Statement | None:
        """Return the statement on a setting; None if there is none."""
        return next((one for one in self.statements if one.speaks_of(name)), self.others)


@dataclass(frozen=True)
class Selection:
    """The part of a plan that a target accepts, the unconfirmed part of it, and remarks on the rest."""

    where: Target
    plan: Plan
    unverified: frozenset[str]
    left_out: tuple[str, ...]

    def explain(self, line: PlanLine, undo: str) -> tuple[str, ...]:
        """Return a line's explanation, and that nobody vouches for it where that is so."""
        remarks = explanation(line, undo)
        if line.change.key not in self.unverified:
            return remarks
        return (*remarks, f"not verified: no source says whether {self.where.title} lets it be changed")


@cache
def target(name: str) -> Target:
    """Read a target's data file."""
    text = files("pgdyno.plan.formats").joinpath("capabilities", f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    others = content.get("others")
    return Target(
        title=content["title"],
        machine=content["machine"],
        statements=tuple(map(_statement, content["statements"])),
        others=None if others is None else _statement(others),
    )


def _statement(table: dict[str, Any]) -> Statement:
    fields = dict(table)
    for name in ("settings", "values"):
        fields[name] = tuple(fields.get(name, ()))
    return Statement(**fields)


def select(plan: Plan, server: Server, where: Target) -> Selection:
    """Split a plan into possible and impossible changes for a target.

    Raises: SettingError for a setting that the server does not know; FormatError for a name that is none.
    """
    for line in setting_lines(plan):
        setting_name(line.change.key, where.title)
    reasons = {line.change.key: _obstacle(line.change, server, where) for line in setting_lines(plan)}
    kept = tuple(line for line in setting_lines(plan) if not reasons[line.change.key])
    names = (line.change.key for line in kept)
    machine = {line.change.key: where.machine for line in host_lines(plan)}
    refused = {name: why for name, why in (reasons | machine).items() if why}
    return Selection(
        where=where,
        plan=replace(plan, lines=kept),
        unverified=frozenset(name for name in names if where.statement_on(name) is None),
        left_out=tuple(
            f"cannot be changed here: {display_name(key)} ({why})" for key, why in refused.items()
        ),
    )


def _obstacle(change: Change, server: Server, where: Target) -> str | None:
    """Return why a target does not take a value; None if it does, as far as is known."""
    statement = where.statement_on(change.key)
    if statement is None:
        return None
    if not statement.can_change:
        return statement.why
    value = in_base_unit(server, change.key, change.value)
    if statement.values and value not in statement.values:
        return f"it takes {', '.join(statement.values)} there, and {change.value} is planned"
    if statement.largest is not None and Decimal(value) > statement.largest:
        most = _guc(server, change.key).display(str(statement.largest))
        return f"it takes {most} at most there, and {change.value} is planned"
    return None


def in_base_unit(server: Server, name: str, value: str) -> str:
    """Return a value as providers take it: numbers in the unit of pg_settings, without the unit.

    Raises: SettingError for a setting that the server does not know, or a value that it does not accept.
    """
    return _guc(server, name).check(value)


def is_boolean(server: Server, name: str) -> bool:
    """Whether a setting is on or off, and nothing else."""
    return _guc(server, name).vartype == "bool"


def _guc(server: Server, name: str) -> Guc:
    guc = server.settings.get(name)
    if guc is None:
        raise SettingError(f'unrecognized configuration parameter "{name}"')
    return guc
