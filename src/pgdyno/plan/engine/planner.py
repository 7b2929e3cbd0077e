"""Run the levers in order and check the result. All plans are made here.

Each lever sees the values planned by earlier levers. Every value is checked against the live
``pg_settings``. A value that the server would reject is a bug in the lever: planning fails, and the value is
never clamped. Findings are facts about the server as found that the user should know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.base.errors import SettingError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.host import Host
from pgdyno.model.plans.plan import (
    CACHE_KINDS,
    HOST_KINDS,
    HUGE_PAGES,
    PROCESS,
    SERVER,
    SETTING,
    Finding,
    Layer,
    Plan,
    PlanLine,
    Skipped,
)
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.plan.engine.durability import LOCKED_SETTINGS, check_durability, durability_findings
from pgdyno.plan.engine.effective import EffectiveSettings, owner_of, scope_of
from pgdyno.plan.engine.memory_proof import check_memory_proof, memory_proof
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of, with_pool_changed
from pgdyno.plan.levers import load
from pgdyno.plan.levers._contract import Goal, Lever, LeverModule, PlanContext, Probe, matches, why_absent
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS, Server, SettingOverride
from pgdyno.postgres.statements import CommitGrouping, WorkloadStatements

_BY_NAME = "possible here, but planned only on request: --lever {}"


@dataclass(frozen=True)
class PlanRequest:
    """A request for a plan.

    ``statements``, ``commits`` and ``sessions`` describe a scratch server; None: not a scratch server.
    ``named`` restricts the plan to these levers, regardless of their layers; empty: all levers of ``layers``.
    ``with_unmeasured``: also plan changes in which interleaved servers cannot differ, because trials measure
    them or the user wants them anyway.
    """

    figures: Figures = field(default_factory=Figures)
    layers: tuple[Layer, ...] = (Layer.APPLICATION,)
    named: tuple[str, ...] = ()
    goal: Goal = Goal.OLTP
    probe: Probe | None = None
    may_change_host: bool = True
    builds: tuple[KnownBuild, ...] | None = None
    statements: Fact[tuple[WorkloadStatements, ...]] | None = None
    commits: Fact[CommitGrouping] | None = None
    sessions: int | None = None
    with_unmeasured: bool = False


def make_plan(
    host: Host | None,
    server: Server,
    request: PlanRequest = PlanRequest(),
    *,
    levers: Mapping[str, LeverModule] | None = None,
) -> Plan:
    """Return the ordered changes for one server, with memory proof, findings and skipped levers.

    Raises: MemoryProofError if the planned server would not fit into memory; UsageError if the stated
    figures contradict the host; SettingError or DurabilityError only for a bug in a lever.
    """
    ctx = context_of(host, server, request)
    planned = run_levers(load() if levers is None else levers, ctx, request)
    lines, settings = planned.lines, planned.settings
    check_durability(settings.planned, server)
    resources = with_pool_changed(ctx.resources, _added_huge_pages(lines))
    proof = memory_proof(settings, resources)
    if proof is not None:
        check_memory_proof(proof, settings, resources)
    return Plan(lines, planned.skipped, findings_for(server, lines), proof, planned.unmeasured)


def context_of(host: Host | None, server: Server, request: PlanRequest) -> PlanContext:
    """Return the initial context of the levers.

    Raises: UsageError if the stated figures contradict the host.
    """
    return PlanContext(
        settings=EffectiveSettings(server),
        resources=resources_of(host, server, request.figures),
        connections=request.figures.connections,
        host=proven_host(host, server),
        goal=request.goal,
        probe=request.probe,
        may_change_host=request.may_change_host,
        builds=request.builds,
        statements=request.statements,
        commits=request.commits,
        sessions=request.sessions,
    )


@dataclass(frozen=True)
class PlannedLines:
    """The planned lines, the levers that planned nothing, and the settings with ``lines`` applied."""

    lines: tuple[PlanLine, ...]
    unmeasured: tuple[PlanLine, ...]
    skipped: tuple[Skipped, ...]
    settings: EffectiveSettings


def run_levers(levers: Mapping[str, LeverModule], ctx: PlanContext, request: PlanRequest) -> PlannedLines:
    """Run the requested levers in order.

    Raises: SettingError for a bug in a lever.
    """
    lines: list[PlanLine] = []
    unmeasured: list[PlanLine] = []
    skipped: list[Skipped] = []
    for module in levers.values():
        if not _is_requested(module.LEVER, request):
            continue
        is_measured = module.LEVER.takes_turns or request.with_unmeasured or bool(request.named)
        before = lines if is_measured else [*lines, *unmeasured]
        seen = replace(
            ctx,
            settings=ctx.settings.plus(_settings(before)),
            resources=with_pool_changed(ctx.resources, _added_huge_pages(before)),
            planned_files=_files(before),
        )
        outcome = plan_one(module, seen, already={line.change.lever for line in before})
        if isinstance(outcome, Skipped):
            skipped.append(outcome)
        elif module.LEVER.is_named_only and module.LEVER.name not in request.named:
            skipped.append(Skipped(module.LEVER.name, _BY_NAME.format(module.LEVER.name)))
        else:
            (lines if is_measured else unmeasured).extend(outcome)
    return PlannedLines(tuple(lines), tuple(unmeasured), tuple(skipped), ctx.settings.plus(_settings(lines)))


def _is_requested(lever: Lever, request: PlanRequest) -> bool:
    return lever.name in request.named if request.named else lever.layer in request.layers


def _settings(lines: Sequence[PlanLine]) -> dict[str, str]:
    return {line.change.key: line.change.value for line in lines if line.change.kind == SETTING}


def _added_huge_pages(lines: Sequence[PlanLine]) -> int:
    pools = (line.change for line in lines if line.change.kind == HUGE_PAGES)
    return sum(int(change.value) - int(change.current or 0) for change in pools)


def _files(lines: Sequence[PlanLine]) -> dict[str, str]:
    return {line.change.key: line.change.value for line in lines if line.change.kind in HOST_KINDS}


def plan_one(
    module: LeverModule, ctx: PlanContext, already: Collection[str] = ()
) -> tuple[PlanLine, ...] | Skipped:
    """Run one lever and check its lines; skip it where it cannot or must not run.

    Raises: SettingError if the lever proposes a value that this server would not accept.
    """
    lever = module.LEVER
    obstacle = _obstacle(lever, ctx, already)
    if obstacle is not None:
        return Skipped(lever.name, obstacle)
    try:
        outcome = module.plan(ctx)
        if isinstance(outcome, Skipped):
            return outcome
        for line in outcome:
            _check(line, lever, ctx)
    except SettingError as error:
        raise SettingError(
            f'lever "{lever.name}" planned a value that this server would not accept: {error.message}',
            detail=error.detail,
            hint="this is a bug in pgdyno; plan without this lever and report it",
        ) from error
    return tuple(replace(line, touches_wakeups=lever.touches_wakeups) for line in outcome)


def _obstacle(lever: Lever, ctx: PlanContext, already: Collection[str]) -> str | None:
    rivals = [name for name in lever.conflicts if name in already]
    if rivals:
        return f'excluded by lever "{rivals[0]}", which is in the plan'
    if lever.settings and not any(map(ctx.settings.has, lever.settings)):
        return f"PostgreSQL {ctx.server.version} has no {' or '.join(lever.settings)}"
    if lever.watched and not any(map(ctx.files, lever.watched)):
        return f"not available: {why_absent(ctx, lever)}"
    if (lever.files or lever.divides_caches) and not ctx.may_change_host:
        return "not available: only root may change the machine, and not in a container"
    if (owner := ctx.owner_of(lever.files)) is not None:
        return f"not available: {owner.warning}: {owner.instead}"
    return ctx.unknown_need(lever)


def _check(line: PlanLine, lever: Lever, ctx: PlanContext) -> None:
    key = line.change.key
    if line.change.kind == SERVER:
        if not lever.chooses_server or line.change.value not in {build.name for build in ctx.builds or ()}:
            raise SettingError(f'"{line.change.value}" is not a build this lever may choose')
        return
    if line.change.kind == PROCESS:
        if key not in lever.process or not ctx.is_scratch:
            raise SettingError(f'"{key}" is not a process property this lever may plan here')
        return
    if line.change.kind in HOST_KINDS:
        _check_of_machine(line, lever, ctx)
        return
    if key in LOCKED_SETTINGS or key not in lever.settings:
        raise SettingError(f'"{key}" is not a setting this lever may change')
    if not ctx.settings.has(key):
        raise SettingError(f'unrecognized configuration parameter "{key}"')
    guc = ctx.settings.guc(key)
    if guc.is_read_only:
        raise SettingError(f'"{key}" is read-only on this server')
    guc.check(line.change.value)


def _check_of_machine(line: PlanLine, lever: Lever, ctx: PlanContext) -> None:
    key = line.change.key
    if line.change.kind in CACHE_KINDS:
        if not lever.divides_caches:
            raise SettingError(f'"{key}" divides the caches, which this lever may not do')
    elif not any(matches(key, pattern) for pattern in lever.files) or ctx.value(key) is None:
        raise SettingError(f'"{key}" is not a file this lever may change')


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
