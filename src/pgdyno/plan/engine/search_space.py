"""The search space of a plan, and the part of it that applies to a running server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.base.errors import SettingError
from pgdyno.model.plans.plan import (
    HOST_KINDS,
    HUGE_PAGES,
    PER_APPLICATION,
    PROCESS,
    SERVER,
    SETTING,
    Change,
    Effect,
    Layer,
    Plan,
    PlanLine,
    Risk,
    kind_of,
)
from pgdyno.model.tuning.tuning import BUILD, Dimension, Space
from pgdyno.plan.engine.durability import LOCKED_SETTINGS
from pgdyno.plan.engine.effective import EffectiveSettings, owner_of
from pgdyno.plan.levers._contract import Lever, LeverModule
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Server

_MEASURED = (PROCESS, *HOST_KINDS)


def space_of(
    plan: Plan,
    server: Server,
    layers: Collection[Layer],
    levers: Mapping[str, LeverModule],
    worth: Mapping[str, float],
) -> Space:
    """Return the space around a plan of these layers; ``worth`` is the bound of each lever's gain.

    Durability settings and settings that this server does not have are excluded.
    """
    late = {name for name, one in levers.items() if one.LEVER.shows_late}
    planned = {line.change.key: line for line in plan.lines}
    dimensions = [
        *_settings(
            server,
            planned,
            (one.LEVER for name, one in levers.items() if one.LEVER.layer in layers and name not in late),
        ),
        *_others(plan.lines),
    ]
    by_key = lever_by_key(plan, levers)
    weighed = [replace(one, worth=worth.get(by_key[one.key], 0.0)) for one in dimensions]
    kept = {line.change.key: line.change.value for line in plan.lines if line.change.lever in late}
    return Space(tuple(sorted(weighed, key=lambda one: -one.worth)), kept)


def _settings(
    server: Server, planned: Mapping[str, PlanLine], levers: Iterable[Lever]
) -> Iterator[Dimension]:
    """Yield a dimension for every setting that a lever plans or tries."""
    found = EffectiveSettings(server)
    for lever in levers:
        for name in _leading(lever, planned):
            if not found.has(name) or name in LOCKED_SETTINGS or found.guc(name).is_read_only:
                continue
            line = planned.get(name)
            value = None if line is None else line.change.value
            guc = found.guc(name)
            values = tuple(_values(guc, value, lever.tried.get(name, ())))
            if values:
                own = value if value in values else None
                brings = {key: planned[key].change.value for key in _led(lever, name) if key in planned}
                yield Dimension(name, lever.layer, values, guc.display(), own, brings=brings)


def _leading(lever: Lever, planned: Mapping[str, PlanLine]) -> list[str]:
    """Return the settings that vary independently, without those that move with another planned one."""
    return [name for name in lever.settings if lever.moves_with.get(name) not in planned]


def _led(lever: Lever, leader: str) -> list[str]:
    return [name for name, other in lever.moves_with.items() if other == leader]


def _values(guc: Guc, planned: str | None, tried: Sequence[str | float]) -> list[str]:
    """Return the distinct planned and tried values that the server accepts, without the present one."""
    wanted = [] if planned is None else [planned]
    wanted += [one if isinstance(one, str) else _scaled(guc, planned, one) for one in tried]
    known, values = {guc.check(guc.setting)}, list[str]()
    for value in wanted:
        try:
            meant = guc.check(value)
        except SettingError:
            continue  # for another version, or out of this server's range
        if meant not in known:
            known.add(meant)
            values.append(value)
    return sorted(values, key=lambda value: _order(guc, value))


def _scaled(guc: Guc, planned: str | None, factor: float) -> str:
    base = float(guc.check(guc.setting if planned is None else planned))
    return guc.display(str(round(base * factor)))


def _order(guc: Guc, value: str) -> float:
    return float(guc.check(value)) if guc.vartype in ("integer", "real") else 0.0


def _others(lines: Iterable[PlanLine]) -> Iterator[Dimension]:
    """Yield planned changes other than settings: each is either applied or left as found."""
    for line in lines:
        change = line.change
        if change.kind in _MEASURED or change.kind == SERVER:
            yield Dimension(
                line_key(line), line.layer, (change.value,), change.current or "unset", change.value
            )


_HUGE_PAGES = "huge_pages"


def line_key(line: PlanLine) -> str:
    """Return the variant key that a planned change sets; ``BUILD`` for a build."""
    return BUILD if line.change.kind == SERVER else line.change.key


def lever_by_key(plan: Plan, levers: Mapping[str, LeverModule]) -> dict[str, str]:
    """Return the lever of every planned key and of every setting that any lever sets."""
    found = {key: name for name, one in levers.items() for key in one.LEVER.settings}
    return found | {line_key(line): line.change.lever for line in plan.lines}


def with_pages_joined(part_of: Mapping[str, str]) -> dict[str, str]:
    """Return the parts, with huge_pages moved to the part of its pool.

    On interleaved servers, huge_pages is on exactly if the server has a pool: it has no separate effect.
    """
    pools = [part for key, part in part_of.items() if kind_of(key) == HUGE_PAGES]
    if not pools:
        return dict(part_of)
    return {key: pools[0] if key == _HUGE_PAGES else part for key, part in part_of.items()}


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
