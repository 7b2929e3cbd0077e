"""The durability lock: settings that no plan, search or accelerate may touch, whatever they would gain.

Whoever wants a server that may lose committed data writes that variant in an experiment file, for a
server pgdyno made itself, and every output then says so. Nothing here decides that; this module only says
no.
"""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.model.errors import DurabilityError
from pgdyno.model.plan import Finding
from pgdyno.model.server import Server
from pgdyno.model.variant import DURABILITY_SETTINGS, Variant

WAL_LEVELS = ("minimal", "replica", "logical")

BACK_DOORS = {"track_counts": "on", "data_sync_retry": "off", "ignore_invalid_pages": "off"}
"""Settings with the effect of a locked one: without counts autovacuum does not run, a retried fsync
reports success for lost pages, and ignored invalid pages hide damage."""

LOCKED_SETTINGS = frozenset(
    {*DURABILITY_SETTINGS, *BACK_DOORS, "wal_level", "data_checksums", "synchronous_standby_names"}
)
"""What a plan may not contain at all, not even with a safe value: those changes are the user's own."""

_HINT = (
    "write such a variant into an experiment file, for a server that pgdyno creates; "
    "its results are marked as not durable"
)


def check_durability(settings: Mapping[str, str], server: Server) -> None:
    """Refuse settings that could lose committed data on this server.

    Raises: DurabilityError naming every such setting.
    """
    unsafe = [*Variant("requested", settings).unsafe_settings, *_back_doors(settings)]
    unsafe += _downgrades(settings, server)
    if unsafe:
        raise DurabilityError(
            f"{', '.join(unsafe)} could lose committed data",
            detail="durability is never traded for speed",
            hint=_HINT,
        )


def _back_doors(settings: Mapping[str, str]) -> list[str]:
    """Compare with the safe value as written: any other spelling of it is refused as well."""
    return [
        f"{name}={settings[name]}"
        for name, safe in BACK_DOORS.items()
        if name in settings and settings[name].strip().lower() != safe
    ]


def _downgrades(settings: Mapping[str, str], server: Server) -> list[str]:
    found = {name: guc.setting for name, guc in server.settings.items() if name in LOCKED_SETTINGS}
    wanted_level = settings.get("wal_level", "").strip().lower()
    downgraded = []
    if "wal_level" in settings and _rank(wanted_level) < _rank(found.get("wal_level", WAL_LEVELS[-1])):
        downgraded.append(f"wal_level={settings['wal_level']}")
    if "data_checksums" in settings:
        downgraded.append(f"data_checksums={settings['data_checksums']}")
    standbys = settings.get("synchronous_standby_names")
    if standbys is not None and standbys != found.get("synchronous_standby_names"):
        downgraded.append(f"synchronous_standby_names={standbys!r}")
    return downgraded


def _rank(wal_level: str) -> int:
    return WAL_LEVELS.index(wal_level) if wal_level in WAL_LEVELS else -1


def durability_findings(server: Server) -> list[Finding]:
    """Return what is unsafe about the server as found. It is reported and left alone."""
    safe = {**DURABILITY_SETTINGS, **BACK_DOORS}
    found = {name: server.settings[name].setting for name in safe if name in server.settings}
    return [
        _finding(name, value, safe[name])
        for name, value in found.items()
        if value != safe[name] and not (name == "synchronous_commit" and value == "remote_apply")
    ]


def _finding(name: str, value: str, safe: str) -> Finding:
    consequences = {
        "fsync": "a crash of the machine can destroy the whole cluster",
        "full_page_writes": "a crash during a write can leave torn pages that recovery cannot repair",
        "synchronous_commit": "a crash can lose transactions that were reported as committed",
        "zero_damaged_pages": "damaged pages are silently replaced by empty ones",
        "autovacuum": "dead rows pile up, and transaction ids can run out",
        "ignore_checksum_failure": "damaged pages are read as if they were whole",
        "ignore_system_indexes": "damaged system indexes stay unnoticed, and lookups are slow",
        "track_counts": "autovacuum has no statistics to act on and does not run",
        "data_sync_retry": "pages lost in a failed sync can be reported as written",
        "ignore_invalid_pages": "recovery continues although it found damaged pages",
    }
    is_local_only = name == "synchronous_commit" and value in ("local", "remote_write")
    return Finding(
        severity="warning" if is_local_only else "danger",
        message=f"{name} is {value}: "
        + (
            "committed transactions survive a crash of this server, but may be missing on a standby"
            if is_local_only
            else consequences[name]
        ),
        hint=f"pgdyno does not touch it; unless this is meant: ALTER SYSTEM SET {name} = {safe}",
    )
