"""Effective settings of a server: planned values over the present ones.

Levers, the memory proof and the findings all look at settings through ``EffectiveSettings``, so that a
value planned by one lever is what the next one sees.

The memory proof includes settings by role and database: ``ALTER ROLE app SET work_mem = '2GB'`` gives every
session of that role 2 GB, whatever the server's own value is. How many such sessions there can be is
bounded by the role's or database's connection limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from pgdyno.postgres.guc import Guc, bytes_of
from pgdyno.postgres.server import Server, SettingOverride

NOT_SET_BY_ANYONE = ("default", "override")
"""Values of ``pg_settings.source`` that the server itself chose."""
INITDB_CHOICES = {"shared_buffers": "16384"}
"""What initdb writes where it is not the built-in default: 128 MB in pages; before 15 the default is 8 MB."""
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


@dataclass(frozen=True)
class EffectiveSettings:
    """A server's settings with ``planned`` values laid over them."""

    server: Server
    planned: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def has(self, name: str) -> bool:
        """Whether this server knows the setting."""
        return name in self.server.settings

    def guc(self, name: str) -> Guc:
        """Return the setting as found. Raises: KeyError if the server does not know it; ask ``has`` first."""
        return self.server.settings[name]

    def text(self, name: str) -> str:
        """Return the value in the server's base unit, as ``pg_settings.setting`` would show it."""
        guc = self.guc(name)
        return guc.check(self.planned[name]) if name in self.planned else guc.setting

    def number(self, name: str) -> float:
        """Return a number in the setting's own unit."""
        return float(self.text(name))

    def size_bytes(self, name: str) -> int:
        """Return an amount of memory in bytes."""
        return bytes_of(self.text(name), self.guc(name).unit)

    def display(self, name: str) -> str:
        """Return the value with a readable unit."""
        return self.guc(name).display(self.text(name))

    def plus(self, planned: Mapping[str, str]) -> EffectiveSettings:
        """Return the same server with more values planned."""
        return EffectiveSettings(self.server, MappingProxyType({**self.planned, **planned}))


def owner_of(guc: Guc) -> str | None:
    """Say who set a value, in words; None if nobody did.

    initdb writes its choices into postgresql.conf, where they look like somebody's: a value equal to the
    built-in default counts as nobody's.
    """
    if guc.source in NOT_SET_BY_ANYONE:
        return None
    if guc.source == "configuration file" and guc.setting in (guc.boot_val, INITDB_CHOICES.get(guc.name)):
        return None
    if guc.source == "configuration file":
        return _owner_in_file(guc)
    places = {
        "command line": "on the server's command line",
        "environment variable": "by an environment variable of the server",
        "database": "for this database (ALTER DATABASE)",
        "user": "for this role (ALTER ROLE)",
        "database user": "for this role in this database (ALTER ROLE … IN DATABASE)",
        "global": "for all roles (ALTER ROLE ALL)",
        "client": "by this connection's options",
        "session": "in this session",
    }
    return places.get(guc.source, f'by "{guc.source}"')


def _owner_in_file(guc: Guc) -> str:
    if guc.sourcefile is None:
        return "in a configuration file (which one is hidden from this role)"
    if guc.sourcefile.endswith("postgresql.auto.conf"):
        return "by ALTER SYSTEM (postgresql.auto.conf)"
    line = f", line {guc.sourceline}" if guc.sourceline is not None else ""
    return f"in {guc.sourcefile}{line}"


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
