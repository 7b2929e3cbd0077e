"""Settings that can be changed on managed services, from data files with sources.

``capabilities/<target>.toml`` describes a target: its title, why its machine cannot be changed, and for each
setting whether it can be changed and to which values. A setting without a source is written and marked as
unverified. A setting that cannot be changed is left out and listed with the reason.
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

    ``settings`` are names, or prefixes ending in ``*``; empty: all settings that no statement names.
    """

    can_change: bool
    source: str
    read: date
    settings: tuple[str, ...] = ()
    why: str = ""  # reason for a restriction
    values: tuple[str, ...] = ()  # allowed values; empty: all that the server accepts
    largest: int | None = None

    def speaks_of(self, name: str) -> bool:
        """Whether this statement names a setting."""
        return any(
            name.startswith(known[:-1]) if known.endswith("*") else name == known for known in self.settings
        )


@dataclass(frozen=True)
class Target:
    """A managed service or tool that controls PostgreSQL's settings."""

    title: str
    machine: str  # why host changes are left out
    statements: tuple[Statement, ...]
    others: Statement | None  # on settings that no statement names; None: no source

    def statement_on(self, name: str) -> Statement | None:
        """Return the statement on a setting; None if no source covers it."""
        return next((one for one in self.statements if one.speaks_of(name)), self.others)


@dataclass(frozen=True)
class Selection:
    """The part of a plan that a target accepts, its unverified settings, and remarks on the rest."""

    where: Target
    plan: Plan
    unverified: frozenset[str]
    left_out: tuple[str, ...]

    def explain(self, line: PlanLine, undo: str) -> tuple[str, ...]:
        """Return a line's explanation, with a remark if it is unverified."""
        remarks = explanation(line, undo)
        if line.change.key not in self.unverified:
            return remarks
        return (*remarks, f"not verified: no source states whether {self.where.title} allows changing it")


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

    Raises: SettingError for a setting that the server does not know; FormatError for an invalid name.
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
    """Return why a target does not accept a value; None if it does or no source covers it."""
    statement = where.statement_on(change.key)
    if statement is None:
        return None
    if not statement.can_change:
        return statement.why
    value = in_base_unit(server, change.key, change.value)
    if statement.values and value not in statement.values:
        return f"allowed: {', '.join(statement.values)}; planned: {change.value}"
    if statement.largest is not None and Decimal(value) > statement.largest:
        most = _guc(server, change.key).display(str(statement.largest))
        return f"maximum: {most}; planned: {change.value}"
    return None


def in_base_unit(server: Server, name: str, value: str) -> str:
    """Return a value in the providers' form: numbers in the unit of pg_settings, without the unit.

    Raises: SettingError for a setting that the server does not know, or a value that it does not accept.
    """
    return _guc(server, name).check(value)


def is_boolean(server: Server, name: str) -> bool:
    """Whether a setting is Boolean."""
    return _guc(server, name).vartype == "bool"


def _guc(server: Server, name: str) -> Guc:
    guc = server.settings.get(name)
    if guc is None:
        raise SettingError(f'unrecognized configuration parameter "{name}"')
    return guc
