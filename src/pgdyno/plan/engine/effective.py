"""Effective settings of a server: its present values, overridden by planned ones.

Levers, the memory proof and the findings read settings through ``EffectiveSettings``: each lever sees the
values planned by earlier levers.

The memory proof includes per-role and per-database settings: ``ALTER ROLE app SET work_mem = '2GB'`` gives
every session of that role 2 GB, regardless of the server's value. The connection limit of the role or
database bounds the number of such sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from pgdyno.postgres.guc import Guc, bytes_of
from pgdyno.postgres.server import Server, SettingOverride

NOT_SET_BY_ANYONE = ("default", "override")
"""Values of ``pg_settings.source`` for values chosen by the server itself."""
INITDB_CHOICES = {"shared_buffers": "16384"}
"""Values initdb writes that differ from built-in defaults: 128 MB in pages; before 15 the default is 8 MB."""
SESSION_SETTINGS = ("work_mem", "hash_mem_multiplier")
"""Settings that determine the memory allowance of a session."""
_ALL_SETTINGS = (
    *SESSION_SETTINGS,
    "maintenance_work_mem",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
)


@dataclass(frozen=True)
class OwnSessions:
    """Sessions with a larger memory allowance than the server's settings give."""

    count: int
    workers: int  # maximum of their concurrent parallel workers, one Gather each
    owners: str  # roles and databases, for display


@dataclass(frozen=True)
class EffectiveSettings:
    """A server's settings, overridden by ``planned`` values."""

    server: Server
    planned: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def has(self, name: str) -> bool:
        """Whether this server has the setting."""
        return name in self.server.settings

    def guc(self, name: str) -> Guc:
        """Return the setting as found. Raises: KeyError if the server does not have it; see ``has``."""
        return self.server.settings[name]

    def text(self, name: str) -> str:
        """Return the value in the server's base unit, as ``pg_settings.setting`` would show it."""
        guc = self.guc(name)
        return guc.check(self.planned[name]) if name in self.planned else guc.setting

    def number(self, name: str) -> float:
        """Return the value as a number in the setting's base unit."""
        return float(self.text(name))

    def size_bytes(self, name: str) -> int:
        """Return the value of a memory setting in bytes."""
        return bytes_of(self.text(name), self.guc(name).unit)

    def display(self, name: str) -> str:
        """Return the value with a readable unit."""
        return self.guc(name).display(self.text(name))

    def plus(self, planned: Mapping[str, str]) -> EffectiveSettings:
        """Return the same server with more values planned."""
        return EffectiveSettings(self.server, MappingProxyType({**self.planned, **planned}))


def owner_of(guc: Guc) -> str | None:
    """Describe where a value was set; None for a default.

    initdb writes its choices to postgresql.conf, where they look like user settings: a value equal to the
    built-in default or to initdb's choice counts as a default.
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
    """Return the settings, each with its largest value over all roles and databases."""
    largest: dict[str, str] = {}
    for name in _ALL_SETTINGS:
        for override in _raising(settings, (name,)):
            value = settings.guc(name).check(override.value)
            largest[name] = max(largest.get(name, value), value, key=Decimal)
    return settings.plus(largest)


def own_sessions(settings: EffectiveSettings) -> OwnSessions | None:
    """Return the sessions with larger per-role or per-database allowances; None if no override raises any."""
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
    """Return the override that raises a session's memory the most; None if none raises it."""
    return max(
        _raising(settings, SESSION_SETTINGS),
        key=lambda one: Decimal(settings.guc(one.name).check(one.value)) / Decimal(settings.text(one.name)),
        default=None,
    )


def scope_of(override: SettingOverride) -> str:
    """Describe the roles and databases that an override applies to."""
    parts = [f'role "{override.role}"'] if override.role else []
    parts += [f'database "{override.database}"'] if override.database else []
    return " in ".join(parts) or "all roles"


def _raising(settings: EffectiveSettings, names: Sequence[str]) -> tuple[SettingOverride, ...]:
    """Return the overrides of these settings that exceed the server's value."""
    return tuple(
        one
        for one in settings.server.overrides.or_else(())
        if one.name in names
        and Decimal(settings.guc(one.name).check(one.value)) > Decimal(settings.text(one.name))
    )
