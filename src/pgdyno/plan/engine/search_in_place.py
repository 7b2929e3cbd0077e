"""The part of a search space that applies to a running server, and how each value is set there. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.model.plans.plan import PER_APPLICATION, SETTING, Change, Effect, Plan, PlanLine, Risk
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.plan.engine.effective import owner_of
from pgdyno.plan.engine.lever_keys import lever_by_key
from pgdyno.plan.levers._contract import LeverModule
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Server

_BY_RELOAD = frozenset({"sighup", "superuser", "user"})
"""Values of ``pg_settings.context`` of settings that a reload applies in every session."""
_STRONGER = frozenset({"command line", "environment variable", "client", "session"}) | frozenset(
    {"database", "user", "database user", "global"}  # ALTER DATABASE, ALTER ROLE
)
"""Values of ``pg_settings.source`` that take precedence over ALTER SYSTEM, which would have no effect."""


@dataclass(frozen=True)
class SpaceInPlace:
    """A space, the keys left out because they need a restart, and those that only applications should set.

    ``of_others`` maps keys set with precedence over ALTER SYSTEM to where they are set.
    """

    space: Space
    left_out: tuple[str, ...]
    per_application: tuple[str, ...]
    of_others: Mapping[str, str]


def space_in_place(space: Space, server: Server, *, may_restart: bool) -> SpaceInPlace:
    """Return the settings of a space that a reload applies.

    With ``may_restart``, the planned values that need a restart are included as one dimension, so that they
    are applied together. Settings set with precedence over ALTER SYSTEM are left out.
    """
    of_others = {key: place for key in _keys(space) if (place := _of_others(server.settings.get(key)))}
    ours = {key: guc for key, guc in server.settings.items() if key not in of_others}
    found = _within(space, replace(server, settings=ours), may_restart=may_restart)
    return replace(
        found,
        left_out=tuple(key for key in found.left_out if key not in of_others),
        per_application=tuple(key for key in found.per_application if key not in of_others),
        of_others=of_others,
    )


def _keys(space: Space) -> list[str]:
    return [*(key for one in space.dimensions for key in (one.key, *one.brings)), *space.kept]


def _of_others(guc: Guc | None) -> str:
    """Return where a setting is set with precedence over ALTER SYSTEM; empty if it is not."""
    return (owner_of(guc) or "") if guc is not None and guc.source in _STRONGER else ""


def _within(space: Space, server: Server, *, may_restart: bool) -> SpaceInPlace:
    """Return the part of a space that the server has settings for."""
    allowed = [one for one in space.dimensions if one.key in server.settings]
    by_reload = [one for one in allowed if _is_by_reload(server.settings[one.key])]
    restarting = [one for one in allowed if server.settings[one.key].needs_restart and one.planned]
    kept = _reloadable(space.kept, server)
    dimensions = [
        *(replace(one, brings=_reloadable(one.brings, server)) for one in by_reload),
        *(_together(restarting, server) if may_restart else ()),
    ]
    there = {key for one in dimensions for key in (one.key, *one.brings)} | kept.keys()
    wanted = [*(one.key for one in space.dimensions), *space.kept]
    missing = [key for key in wanted if key not in there]
    return SpaceInPlace(
        Space(tuple(sorted(dimensions, key=lambda one: -one.worth)), kept),
        tuple(key for key in missing if key not in PER_APPLICATION),
        tuple(key for key in missing if key in PER_APPLICATION),
        {},
    )


def lines_in_place(
    space: Space, plan: Plan, server: Server, levers: Mapping[str, LeverModule]
) -> tuple[PlanLine, ...]:
    """Return a line for every setting of a space; it describes how to set any of its values."""
    planned = {line.change.key: line for line in plan.lines if line.change.kind == SETTING}
    names = lever_by_key(plan, levers)
    brought = [key for one in space.dimensions for key in (one.key, *one.brings)]
    return tuple(
        planned.get(key) or _line(server.settings[key], names.get(key, ""), levers)
        for key in dict.fromkeys([*space.kept, *brought])
    )


def _is_by_reload(guc: Guc) -> bool:
    return guc.context in _BY_RELOAD and guc.name not in PER_APPLICATION


def _reloadable(settings: Mapping[str, str], server: Server) -> dict[str, str]:
    return {
        key: value
        for key, value in settings.items()
        if key in server.settings and _is_by_reload(server.settings[key])
    }


def _together(restarting: Sequence[Dimension], server: Server) -> list[Dimension]:
    """Return one dimension for all planned values that need a restart; empty if there is no such value."""
    if not restarting:
        return []
    first, *others = restarting
    brings = {key: value for one in restarting for key, value in one.brings.items() if key in server.settings}
    brings |= {one.key: one.planned for one in others if one.planned is not None}
    values = () if first.planned is None else (first.planned,)
    return [replace(first, values=values, brings=brings, worth=max(one.worth for one in restarting))]


def _line(guc: Guc, lever: str, levers: Mapping[str, LeverModule]) -> PlanLine:
    found = guc.display()
    effect = Effect.RESTART if guc.needs_restart else Effect.RELOAD
    return PlanLine(
        change=Change(lever, SETTING, guc.name, found, found, effect),
        layer=levers[lever].LEVER.layer,
        reason="a search tries other values",
        evidence="measured",
        risk=Risk.RESTART if guc.needs_restart else levers[lever].LEVER.risk,
        undo="pgdyno revert",
    )
