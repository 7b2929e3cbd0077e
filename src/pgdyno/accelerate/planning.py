"""The plan for a scratch server, and the configurations that studies compare."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from pgdyno.apply.host_state import this_host
from pgdyno.base.errors import PgdynoError, ServerError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.base.ports import Progress
from pgdyno.builds.built_servers import known_builds
from pgdyno.host.probes import LZ4
from pgdyno.host.probing.run_probes import measure_fsync_us
from pgdyno.load.driver import Driver
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.measure.awake import with_proven_polling
from pgdyno.measure.bundled_study import APPLICATION, PGTUNE, SYSTEM, TUNED, StudyContext
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.statement_plans import sampled_statements
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import PREPARED, Step, TpchStep, Workload
from pgdyno.model.plans.plan import PLAN, Layer, Plan
from pgdyno.model.plans.recipe import KnownBuild
from pgdyno.model.variants.variant import Variant, require_measurable
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.resources import Figures, Resources
from pgdyno.plan.inspection.inspect import inspect_dsn
from pgdyno.plan.inspection.server_programs import ProgramsProbe, page_compression
from pgdyno.plan.peers.comparable import PeerSettings, accepted_by
from pgdyno.plan.peers.pgtune import settings as pgtune_settings
from pgdyno.plan.peers.tuned_profile import tuned_files
from pgdyno.plan.statement_plans import SOURCE, plan_statement, plan_workload, together
from pgdyno.plan.subject import Subject, peer_facts, subject_of
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.named_objects import read_writing_functions
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.server import Server
from pgdyno.postgres.statements import ENOUGH_CLIENTS, CommitGrouping, PlannedStatement, WorkloadStatements
from pgdyno.workload.capture.statements import reads_alone

SECONDS = 3.0  # arbitrary: a few hundred flushes of a slow disk
_SOURCE = "xact_commit and flushes of the WAL under the workload"
_WAL_IN_PG_STAT_IO = 18
_COUNTED_SINCE_18 = """
    SELECT d.xact_commit,
           (SELECT pg_catalog.sum(fsyncs) FROM pg_catalog.pg_stat_io
             WHERE object OPERATOR(pg_catalog.=) 'wal' AND context OPERATOR(pg_catalog.=) 'normal')
      FROM pg_catalog.pg_stat_database d
     WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"""
_COUNTED = """
    SELECT d.xact_commit, (SELECT wal_sync FROM pg_catalog.pg_stat_wal)
      FROM pg_catalog.pg_stat_database d
     WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()"""
_HAS_NO_CLIENTS = """
    SELECT pg_catalog.count(*) OPERATOR(pg_catalog.=) 0 FROM pg_catalog.pg_stat_activity
     WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
       AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()"""
_WAIT_S = 30.0  # takes milliseconds, seconds on a busy host; an early reading would miss counts


def count_commits(
    arm: Arm, loads: Loads, workload: Workload, design: Design, major: int, workspace: Workspace
) -> Fact[CommitGrouping]:
    """Run the workload and count its commits; unknown, with a reason, where commits rarely coincide.

    Raises: GeneratorError, ServerError.
    """
    clients = workload.clients or design.clients
    if workload.is_read_only or workload.step:
        return unknown(f'workload "{workload.name}" does not commit continuously', _SOURCE)
    if clients < ENOUGH_CLIENTS:
        return unknown(f"{clients} clients rarely commit at the same time", _SOURCE)
    with workspace.scratch() as scratch:
        flush_us = measure_fsync_us(scratch)
    if isinstance(flush_us.value, Unknown):
        return Fact(flush_us.value, flush_us.source)
    query = _COUNTED_SINCE_18 if major >= _WAL_IN_PG_STAT_IO else _COUNTED
    before = arm.query(query)
    label = f"commits.{workload.name}"
    with closing(loads.prepare([arm], [label], workload, design, SECONDS, [0])) as turns:
        turns.warm_up(0, SECONDS)
        turns.end()
    loads.forget(label)
    _await_no_clients(arm)  # backends report their statistics when they exit
    after = arm.query(query)
    commits, flushes = (int((late or 0) - (early or 0)) for early, late in zip(before, after, strict=True))
    return Fact(CommitGrouping(workload.name, clients, commits, flushes, flush_us.value), _SOURCE)


def best_grouped(found: Iterable[Fact[CommitGrouping]]) -> Fact[CommitGrouping]:
    """Return the count with most commits per flush; unknown if all are unknown."""
    facts = tuple(found)
    known = {fact: fact.value.commits_per_flush for fact in facts if not isinstance(fact.value, Unknown)}
    if known:
        return max(known, key=lambda fact: known[fact])
    return facts[-1] if facts else unknown("no workload was measured", _SOURCE)


def _await_no_clients(arm: Arm) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not arm.holds(_HAS_NO_CLIENTS) and time.monotonic() < deadline:
        time.sleep(0.05)


_MOST_UNPLANNED = 0.05  # share of the original; with more, the other statements' plans are not representative
Connect: TypeAlias = Callable[[], Connection]
"""Opens a session with the role and search path of the workload's load."""


@dataclass(frozen=True)
class Planned:
    """A plan, its subject, and the context that studies need."""

    subject: Subject
    plan: Plan
    study_context: StudyContext


def builds_to_choose(conditions: Conditions) -> tuple[KnownBuild, ...] | None:
    """Return the builds that scratch servers could run instead; None: the present installation is unknown."""
    if conditions.installation is None:
        return None
    return known_builds(
        workspace(), conditions.installation.bin_directory, accepts_patches=conditions.accepts_patches
    )


def plan_for(subject: Subject, base: Variant, conditions: Conditions, request: PlanRequest) -> Planned:
    """Plan for a subject; ``base`` is its configuration as a variant.

    Raises: MemoryProofError if no plan fits.
    """
    if request.probe is None and conditions.installation is not None:
        probe = ProgramsProbe(conditions.installation, workspace(), subject.server, subject.pages)
        request = replace(request, probe=probe)
    request = replace(
        request,
        statements=subject.statements,
        commits=subject.commits,
        sessions=None if subject.statements is None else _fewest_sessions(conditions),
    )
    plan = make_plan(subject.host, subject.server, request)
    if request.may_change_host:
        plan = with_proven_polling(plan, this_host())
    parts = _layer_by_layer(plan)
    configurations: dict[str, Mapping[str, str]] = {}
    if Layer.SYSTEM in request.layers:
        files = {change.key: change.value for change in plan.host_changes}
        configurations |= {APPLICATION: plan.settings, SYSTEM: files, TUNED: tuned_files(subject.host)}
    configurations |= {name: part.values for name, part in parts.items()}
    notes: tuple[str, ...] = ()
    peer = _pgtune(subject.server, subject.resources)
    if peer is not None:
        configurations[PGTUNE] = peer.settings
        notes = tuple(f"pgtune's {out.name} = {out.value} is left out: {out.reason}" for out in peer.left_out)
    context = StudyContext(
        base,
        tuple(conditions.workloads),
        conditions.design,
        configurations,
        notes,
        servers={name: part.server for name, part in parts.items() if part.server is not None},
        layers=tuple(name for name in parts if name != PLAN),
    )
    return Planned(subject, plan, context)


def _fewest_sessions(conditions: Conditions) -> int:
    """Return the smallest number of concurrently busy sessions over all workloads."""
    return min(_busy_sessions(one, conditions.design) for one in conditions.workloads.values())


def _busy_sessions(workload: Workload, design: Design) -> int:
    match workload.kind:
        case TpchStep():
            return 1  # the power run; the throughput run has streams
        case Step(clients=clients):
            return clients  # concurrent inserts and deletes add few
    return workload.clients or design.clients


def _layer_by_layer(plan: Plan) -> dict[str, Plan]:
    """Return the plan with its first layer alone, with its first two, and so on; the last is the whole."""
    names = [layer.value for layer in plan.layers]
    parts = {"+".join(names[:count]): plan.of_layers(plan.layers[:count]) for count in range(1, len(names))}
    return {**parts, PLAN: plan}


def inspect_scratch(base: Variant, conditions: Conditions, figures: Figures, progress: Progress) -> Subject:
    """Start ``base`` on the workloads' largest data set, and inspect it and its host.

    Each workload's statements are planned on its own data, with the plan's cost settings.
    Raises: VariantError for settings that no server may have.
    """
    require_measurable([base])
    workloads = tuple(conditions.workloads.values())
    data_sets = {one.data_set.key: one.data_set for one in workloads}
    by_size = sorted(data_sets.values(), key=lambda data: data.size_bytes, reverse=True)
    subjects: list[Subject] = []
    statements: list[Fact[WorkloadStatements]] = []
    commits: list[Fact[CommitGrouping]] = []
    with open_scratch_arena(conditions.installation, (base,), progress, is_isolated=False) as arena:
        for data_set in by_size:
            arena.load(base, data_set)
        progress.step("inspecting the host and the server")
        for data_set in by_size:
            arena.restore([base], [0], data_set)
            with arena.arms([base], [0], data_set) as (arm,):
                if not subjects:
                    found = subject_of(inspect_dsn(arm.server.dsn, figures))
                    subjects.append(_with_page_compression(found))
                statements += [
                    _plan_statements(arm, arena.loads, workload, subjects[0], figures)
                    for workload in workloads
                    if workload.data_set == data_set
                ]
                commits += [
                    count_commits(
                        arm, arena.loads, one, conditions.design, subjects[0].server.major, workspace()
                    )
                    for one in workloads
                    if one.data_set == data_set
                ]
    return replace(subjects[0], statements=together(statements), commits=best_grouped(commits))


def _plan_statements(
    arm: Arm, loads: Loads, workload: Workload, subject: Subject, figures: Figures
) -> Fact[WorkloadStatements]:
    if workload.captured is not None:
        connect = partial(loads.connect, arm, workload)
        prepare = partial(_set_as_planned, subject=subject, figures=figures)
        return plan_captured(connect, prepare, workload, loads.find_driver())
    with closing(arm.connect()) as connection:
        connection.execute("SET search_path = pg_catalog, public")  # table names have no schema
        _set_as_planned(connection, subject, figures)
        return plan_workload(connection, workload, loads.find_driver)


def _with_page_compression(subject: Subject) -> Subject:
    """Measure the compression of a running scratch server's pages, if its build has lz4."""
    if LZ4 not in subject.server.settings["wal_compression"].enumvals:
        return subject
    return replace(subject, pages=page_compression(workspace(), subject.server))


def _set_as_planned(connection: Connection, subject: Subject, figures: Figures) -> None:
    """Apply the plan's session settings: costs and work_mem affect how statements are planned."""
    planned = make_plan(subject.host, subject.server, PlanRequest(figures)).settings
    for name, value in planned.items():
        if subject.server.settings[name].context == "user":
            connection.execute("SELECT pg_catalog.set_config(%s, %s, false)", (name, value))


def _pgtune(server: Server, resources: Resources) -> PeerSettings | None:
    """Return pgtune's settings for this host; None where its inputs are unknown."""
    facts = peer_facts(server, resources)
    return None if facts is None else accepted_by(server, pgtune_settings(facts))


def plan_captured(
    connect: Connect, prepare: Callable[[Connection], None], workload: Workload, driver: Driver
) -> Fact[WorkloadStatements]:
    """Plan the statements of a captured workload; unknown if that fails for too large a share of its time.

    ``prepare`` is called with the planning session.
    """
    captured = workload.captured
    assert captured is not None  # noqa: S101 — checked by the caller
    if captured.protocol != PREPARED:
        return unknown(f'workload "{workload.name}" does not prepare its statements by name', SOURCE)
    try:
        with closing(connect()) as connection:
            samples = sampled_statements(connection, workload, driver)
            writing = read_writing_functions(connection)
    except PgdynoError as error:
        return unknown(_reason_of(error), SOURCE)
    calls, shares = _calls_per_transaction(captured), captured.shares
    planned: dict[str, PlannedStatement] = {}
    with closing(connect()) as connection:
        prepare(connection)
        for one in samples:
            with suppress(ServerError):  # counted as missing below
                each = replace(one, calls=calls[one.name])
                found = plan_statement(connection, each, is_run=reads_alone(one.sql, writing))
                planned[one.name] = replace(found, is_private=True)
    prepared = [one.name for one in captured.statements if one.is_prepared]
    missing = [name for name in prepared if name not in planned]
    if sum(shares[name] for name in missing) > _MOST_UNPLANNED:
        return unknown(
            f"too many statements of {workload.name} cannot be planned: {', '.join(missing)}", SOURCE
        )
    return Fact(WorkloadStatements(workload.name, tuple(planned.values())), SOURCE)


def _calls_per_transaction(captured: CapturedWorkload) -> Mapping[str, float]:
    """Return the mean number of calls of each statement per transaction, over all kinds of transaction."""
    whole = sum(one.weight for one in captured.transactions)
    calls: defaultdict[str, float] = defaultdict(float)
    for one in captured.transactions:
        for call in one.calls:
            calls[call.statement] += one.weight * call.times / whole
    return calls


def _reason_of(error: PgdynoError) -> str:
    return f"{error.message}: {error.detail}" if error.detail else error.message
