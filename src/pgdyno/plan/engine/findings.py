"""Findings: facts about the server as found that the user should know."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base.facts import Unknown
from pgdyno.model.plans.plan import SETTING, Finding, PlanLine
from pgdyno.plan.engine.durability import durability_findings
from pgdyno.plan.engine.effective import owner_of, scope_of
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS, Server, SettingOverride

KNOWN_MAJORS = (15, 16, 17, 18)
BEST_EFFORT_MAJORS = (14,)


def findings_for(server: Server, lines: Sequence[PlanLine]) -> tuple[Finding, ...]:
    """Return all findings, most severe first."""
    found = [
        *durability_findings(server),
        *_version(server),
        *_masked(server, lines),
        *_owned_by_command_line(server, lines),
        *_standbys(server, lines),
        *_pending_restart(server, lines),
        *_alter_system_forbidden(server, lines),
    ]
    order = {"danger": 0, "warning": 1, "note": 2}
    return tuple(sorted(found, key=lambda finding: order[finding.severity]))


def _version(server: Server) -> list[Finding]:
    if server.major in KNOWN_MAJORS:
        return []
    support = "has best-effort support" if server.major in BEST_EFFORT_MAJORS else "is not supported yet"
    return [
        Finding(
            "warning",
            f"PostgreSQL {server.major} {support}: the plan relies on the server's pg_settings",
            "PostgreSQL 15 to 18 are tested",
        )
    ]


def _masked(server: Server, lines: Sequence[PlanLine]) -> list[Finding]:
    """Return findings on per-role and per-database settings that override planned values."""
    if isinstance(server.overrides.value, Unknown):
        return [
            Finding(
                "note",
                f"per-role and per-database settings are not known: {server.overrides.value.reason}",
                "any of them would override the planned value of the same setting, and the memory proof does "
                "not include them",
            )
        ]
    planned = {line.change.key: line.change.value for line in lines}
    return [
        Finding(
            "warning",
            f"{override.name} = {override.value} is set for {scope_of(override)} and overrides the planned "
            f"{planned[override.name]} there",
            f"remove it with {_reset(override)}",
        )
        for override in server.overrides.value
        if override.name in planned
    ]


def _reset(override: SettingOverride) -> str:
    """Return the statement that removes an override."""
    role, database, name = override.role, override.database, override.name
    if role is None and database is not None:
        return f'ALTER DATABASE "{database}" RESET {name}'
    quoted = f'"{role}"' if role is not None else "ALL"
    within = f' IN DATABASE "{database}"' if database is not None else ""
    return f"ALTER ROLE {quoted}{within} RESET {name}"


def _owned_by_command_line(server: Server, lines: Sequence[PlanLine]) -> list[Finding]:
    owned = [server.settings[line.change.key] for line in lines if line.change.kind == SETTING]
    return [
        Finding(
            "warning",
            f"{guc.name} is set {owner_of(guc)}, which overrides all configuration files",
            "change it where the server is started (unit file, pg_ctl -o, Patroni)",
        )
        for guc in owned
        if guc.source in ("command line", "environment variable")
    ]


def _standbys(server: Server, lines: Sequence[PlanLine]) -> list[Finding]:
    keys = [line.change.key for line in lines if line.change.key in STANDBY_FIRST_SETTINGS]
    if not keys or not (server.standbys.or_else(()) or server.is_in_recovery):
        return []
    return [
        Finding(
            "warning",
            f"this server is part of a replicated cluster, and the plan changes {', '.join(keys)}",
            "raise these on the standbys first and lower them on the primary first",
        )
    ]


def _pending_restart(server: Server, lines: Sequence[PlanLine]) -> list[Finding]:
    planned = {line.change.key for line in lines}
    waiting = [
        guc.name for guc in server.settings.values() if guc.pending_restart and guc.name not in planned
    ]
    if not waiting:
        return []
    return [
        Finding(
            "warning",
            f"changed in a configuration file, pending restart: {', '.join(sorted(waiting))}",
            "a restart for this plan also applies these changes",
        )
    ]


def _alter_system_forbidden(server: Server, lines: Sequence[PlanLine]) -> list[Finding]:
    guc = server.settings.get("allow_alter_system")
    if guc is None or guc.setting == "on" or not lines:
        return []
    return [
        Finding(
            "warning",
            "allow_alter_system is off: this server's settings are managed elsewhere",
            "add the planned settings there: pgdyno advise --format conf",
        )
    ]
