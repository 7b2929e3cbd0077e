"""A server as text: identity, capabilities, configuration and its sources. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pgdyno.base import numbers
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Capabilities, DataDirectory, Server, SettingOverride, Standby

T = TypeVar("T")

_LABEL_WIDTH = 18
_NAME_WIDTH_LIMIT = 34
_VALUE_WIDTH_LIMIT = 28


@dataclass(frozen=True)
class Means:
    """The resources available to the server, read from its proven host or stated by the user."""

    memory_bytes: Fact[int]
    cpu_count: Fact[float]
    storage: Fact[Any]


def server_text(server: Server, *, target: str, means: Means) -> str:
    """Return the readable description of a server; ``target`` is its address."""
    settings = [(guc.name, _value(guc), _origin(guc)) for guc in server.non_default_settings]
    sections = [
        _identity(server, target, means.memory_bytes),
        _means(means),
        _capabilities(server.capabilities, server),
        [f"Configured settings ({len(settings)})", *_table(settings)],
        _overrides(server.overrides),
        ["Hidden from this role", *(f"  {thing}" for thing in server.hidden)] if server.hidden else [],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def data_directory_text(directory: DataDirectory) -> str:
    """Return the facts from a data directory's files, for a server that is not running."""
    lines = [
        "Data directory",
        _field("path", directory.path),
        _field("major version", str(directory.major)),
        _field("owner", directory.owner),
        _field("server", _shown(directory.postmaster, lambda postmaster: f"process {postmaster.pid}")),
    ]
    settings = directory.settings
    if isinstance(settings.value, Unknown) or not settings.value:
        none = _shown(settings, lambda _: f"none in {settings.source}")
        return "\n".join([*lines, _field("settings", none), ""])
    rows = [(item.name, item.value, f"{item.file}:{item.line}") for item in settings.value]
    title = f"Settings in its files ({len(rows)}; of duplicates the last one takes effect)"
    return "\n".join([*lines, "", title, *_table(rows), ""])


def _identity(server: Server, target: str, memory: Fact[int]) -> list[str]:
    role = "superuser" if server.is_superuser else "ordinary role"
    lines = [
        "Server",
        _field(
            "version", f"PostgreSQL {server.version}, {'standby' if server.is_in_recovery else 'primary'}"
        ),
        _field("build", server.build),
        _field("connection", f"{target} ({role})"),
        _field("data directory", _shown(server.data_directory, str)),
        _field("databases", _databases(server.databases_bytes, memory)),
        _field("on this host", _with_source(server.is_colocated, _yes_no)),
        _field("standbys", _shown(server.standbys, _standbys)),
    ]
    for manager in server.managers:
        lines.append(_field("managed by", f"{manager.name}: {manager.evidence}"))
        lines.append(_field("", f"change settings with {manager.how_to_change}"))
    return lines


def _means(means: Means) -> list[str]:
    return [
        "Available resources",
        _field("memory", _with_source(means.memory_bytes, numbers.size)),
        _field("CPUs", _with_source(means.cpu_count, lambda count: f"{count:g}")),
        _field("storage", _with_source(means.storage, str)),
    ]


def _databases(size: Fact[int], memory: Fact[int]) -> str:
    def compared(size_bytes: int) -> str:
        limit_bytes = memory.or_none()
        if not limit_bytes:
            return f"{numbers.size(size_bytes)}, memory unknown"
        share = numbers.share(size_bytes / limit_bytes, 1)
        return f"{numbers.size(size_bytes)}, {share} of the memory limit {numbers.size(limit_bytes)}"

    return _shown(size, compared)


def _standbys(standbys: Sequence[Standby]) -> str:
    shown = (f"{standby.application_name} ({standby.state}, {standby.sync_state})" for standby in standbys)
    return "; ".join(shown) if standbys else "none"


def _capabilities(capabilities: Capabilities, server: Server) -> list[str]:
    toast = server.settings.get("default_toast_compression")
    return [
        "Capabilities of this build",
        _field("I/O methods", _shown(capabilities.io_methods, _listed)),
        _field("WAL compression", _shown(capabilities.wal_compression_methods, _listed)),
        _field("TOAST compression", _listed(toast.enumvals if toast else ())),
        _field("JIT", _shown(capabilities.has_jit, _yes_no)),
        _field("SSL", _shown(capabilities.has_ssl, _yes_no)),
        _field("configured with", _shown(capabilities.build_flags, str.strip)),
        _field("CFLAGS", _shown(capabilities.compiler_flags, str)),
    ]


def _value(guc: Guc) -> str:
    value = guc.display() if guc.vartype in ("integer", "real") else guc.setting
    return value or "''"


def _origin(guc: Guc) -> str:
    origin = f"{guc.sourcefile}:{guc.sourceline}" if guc.sourcefile else guc.source
    return f"{origin} (pending restart)" if guc.pending_restart else origin


def _overrides(overrides: Fact[tuple[SettingOverride, ...]]) -> list[str]:
    title = "Per-role and per-database settings"
    if isinstance(overrides.value, Unknown):
        return [title, _field("unknown", overrides.value.reason)]
    rows = [(item.name, item.value, _owner(item)) for item in overrides.value]
    return [f"{title} ({len(rows)})", *_table(rows)] if rows else []


def _owner(override: SettingOverride) -> str:
    role = f"role {override.role}" if override.role is not None else "every role"
    return f"{role} in database {override.database}" if override.database is not None else role


def _table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Align three columns; overlong cells do not widen their column."""
    name_width = _width((row[0] for row in rows), _NAME_WIDTH_LIMIT)
    value_width = _width((row[1] for row in rows), _VALUE_WIDTH_LIMIT)
    return [f"  {name:<{name_width}}  {value:<{value_width}}  {origin}" for name, value, origin in rows]


def _width(cells: Iterable[str], limit: int) -> int:
    return max((len(cell) for cell in cells if len(cell) <= limit), default=0)


def _field(label: str, text: str) -> str:
    return f"  {label:<{_LABEL_WIDTH}}{text}"


def _shown(fact: Fact[T], show: Callable[[T], str]) -> str:
    return f"unknown: {fact.value.reason}" if isinstance(fact.value, Unknown) else show(fact.value)


def _with_source(fact: Fact[T], show: Callable[[T], str]) -> str:
    return f"{_shown(fact, show)}  ({fact.source})" if fact.is_known else _shown(fact, show)


def _listed(values: Sequence[str]) -> str:
    return ", ".join(values) if values else "none"


def _yes_no(value: bool) -> str:  # noqa: FBT001 — the value to show
    return "yes" if value else "no"
