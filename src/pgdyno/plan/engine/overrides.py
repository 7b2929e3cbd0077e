"""Per-role and per-database settings that the memory proof must include.

``ALTER ROLE app SET work_mem = '2GB'`` gives every session of that role 2 GB, whatever the server's own
value is. How many such sessions there can be is bounded by the role's or database's connection limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.postgres.server import SettingOverride

SESSION_SETTINGS = ("work_mem", "hash_mem_multiplier")
"""What decides how much each session of such a role or database may take."""

_ALL_SETTINGS = (
    *SESSION_SETTINGS,
    "maintenance_work_mem",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
)


@dataclass(frozen=True)
class OwnSessions:
    """Sessions that may take more than the server's settings say."""

    count: int
    workers: int  # parallel workers that they may have at once, one Gather each
    owners: str  # in words


def with_largest_overrides(settings: EffectiveSettings) -> EffectiveSettings:
    """Return the settings with the largest value of each that any role or database sets for itself."""
    largest: dict[str, str] = {}
    for name in _ALL_SETTINGS:
        for override in _raising(settings, (name,)):
            value = settings.guc(name).check(override.value)
            largest[name] = max(largest.get(name, value), value, key=Decimal)
    return settings.plus(largest)


def own_sessions(settings: EffectiveSettings) -> OwnSessions | None:
    """Return the sessions with larger allowances of their own; None if there are none."""
    raising = _raising(settings, SESSION_SETTINGS)
    if not raising:
        return None
    connections = int(settings.number("max_connections"))
    limits = {(one.role, one.database): one.connection_limit for one in raising}
    count = sum(connections if limit is None else limit for limit in limits.values())
    per_session = with_largest_overrides(settings).number("max_parallel_workers_per_gather")
    count = min(count, connections)
    return OwnSessions(count, int(count * per_session), ", ".join(dict.fromkeys(map(scope_of, raising))))


def largest_override(settings: EffectiveSettings) -> SettingOverride | None:
    """Return the override that raises a session's memory most; None if none does."""
    return max(
        _raising(settings, SESSION_SETTINGS),
        key=lambda one: Decimal(settings.guc(one.name).check(one.value)) / Decimal(settings.text(one.name)),
        default=None,
    )


def scope_of(override: SettingOverride) -> str:
    """Return for whom an override counts, in words."""
    parts = [f'role "{override.role}"'] if override.role else []
    parts += [f'database "{override.database}"'] if override.database else []
    return " in ".join(parts) or "all roles"


def _raising(settings: EffectiveSettings, names: Sequence[str]) -> tuple[SettingOverride, ...]:
    """Return the overrides of these settings that are above the server's value."""
    return tuple(
        one
        for one in settings.server.overrides.or_else(())
        if one.name in names
        and Decimal(settings.guc(one.name).check(one.value)) > Decimal(settings.text(one.name))
    )
