"""The durability lock: settings that plans, searches and accelerate must not change.

A variant that may lose committed data is allowed only in an experiment file, for a server that pgdyno
created; all of its results are marked as not durable. This module only refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.base.errors import DurabilityError
from pgdyno.model.plans.plan import Finding
from pgdyno.model.variants.durability import DURABILITY_LOCK, WAL_LEVELS, unsafe_settings
from pgdyno.postgres.server import Server

LOCKED_SETTINGS = frozenset({*DURABILITY_LOCK, "synchronous_standby_names"})
"""Settings that a plan must not contain, not even with a safe value: only the user may change them."""

_OWNERS_CHOICE = frozenset({"wal_level", "data_checksums"})
"""Settings without findings: every existing value is acceptable, but pgdyno must not change it."""

_HINT = (
    "write such a variant into an experiment file, for a server that pgdyno creates; "
    "its results are marked as not durable"
)


def check_durability(settings: Mapping[str, str], server: Server) -> None:
    """Refuse settings that could lose committed data on this server.

    Raises: DurabilityError naming every such setting.
    """
    wanted = {name.lower(): value for name, value in settings.items()}
    unsafe = dict.fromkeys([*unsafe_settings(wanted), *_downgrades(wanted, server)])
    if unsafe:
        raise DurabilityError(
            f"{', '.join(unsafe)} could lose committed data",
            detail="durability is never traded for speed",
            hint=_HINT,
        )


def _downgrades(settings: Mapping[str, str], server: Server) -> list[str]:
    """Return the settings that would make the server less durable than it is now."""
    found = {name: guc.setting for name, guc in server.settings.items() if name in LOCKED_SETTINGS}
    downgraded = []
    level = settings.get("wal_level")
    if level is not None and _rank(level) < _rank(found.get("wal_level", WAL_LEVELS[-1])):
        downgraded.append(f"wal_level={level}")
    standbys = settings.get("synchronous_standby_names")
    if standbys is not None and standbys != found.get("synchronous_standby_names"):
        downgraded.append(f"synchronous_standby_names={standbys!r}")
    return downgraded


def _rank(wal_level: str) -> int:
    level = wal_level.strip().lower()
    return WAL_LEVELS.index(level) if level in WAL_LEVELS else -1


def durability_findings(server: Server) -> list[Finding]:
    """Return findings about unsafe settings of the server as found. They are reported, never changed."""
    found = {name: server.settings[name].setting for name in DURABILITY_LOCK if name in server.settings}
    return [
        _finding(name, value)
        for name, value in found.items()
        if name not in _OWNERS_CHOICE and not DURABILITY_LOCK[name].allows(value)
    ]


def check_found(server: Server, place: str) -> None:
    """Refuse to tune a server that may lose data as found; ``place`` names it in the message.

    Raises: DurabilityError with all findings of severity "danger".
    """
    dangers = [finding for finding in durability_findings(server) if finding.severity == "danger"]
    if dangers:
        raise DurabilityError(
            f"the server at {place} may lose data as it is set up now",
            detail="; ".join(finding.message for finding in dangers),
            hint=dangers[0].hint,
        )


def _finding(name: str, value: str) -> Finding:
    lock = DURABILITY_LOCK[name]
    is_local_only = name == "synchronous_commit" and value in ("local", "remote_write")
    survives = "committed transactions survive a crash of this server, but may be missing on a standby"
    return Finding(
        severity="warning" if is_local_only else "danger",
        message=f"{name} is {value}: {survives if is_local_only else lock.risk}",
        hint=f"pgdyno does not change it; unless intended: ALTER SYSTEM SET {name} = {lock.safe[0]}",
    )
