"""The search space of a plan: its changes, and additional values from levers. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pgdyno.base.errors import SettingError
from pgdyno.model.plans.plan import HOST_KINDS, PROCESS, SERVER, Layer, Plan, PlanLine
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.plan.engine.durability import LOCKED_SETTINGS
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.lever_keys import lever_by_key, line_key
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
