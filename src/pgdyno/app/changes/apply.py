"""``pgdyno apply``: carry out a plan, all of it or nothing.

Order: every check → receipts on disk → ALTER SYSTEM → reload, and restart where allowed → read back. If
anything fails on the way, what was found is restored at once; only if that fails too, something stays
changed, and the error says what, with the lines that mend it by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pgdyno.app.changes.owners import check_owners
from pgdyno.app.changes.persist import Persisted, Persisting
from pgdyno.host.files.tree import Tree
from pgdyno.journal.configuration.foreign_edits import read_foreign_edits
from pgdyno.journal.configuration.standby_order import check_standby_order
from pgdyno.journal.configuration.statements import restore_statement
from pgdyno.journal.ledger.log import Contents, open_journal, read_journal
from pgdyno.journal.runs.by_hand import making_statement, outcome
from pgdyno.journal.runs.changes import Prepared, new_apply_id, prepare
from pgdyno.journal.runs.host_run import HostRun
from pgdyno.journal.runs.run import ApplyRun
from pgdyno.journal.runs.server_writers import running_writers
from pgdyno.journal.runs.unfinished import check_unfinished
from pgdyno.journal.session.access import ServerAccess, Steps, no_steps
from pgdyno.journal.session.ownership import check_managers, check_settings
from pgdyno.journal.session.privileges import check_privileges
from pgdyno.journal.session.server_files import ServerFiles
from pgdyno.journal.session.session import Session, locked_session, reading_session
from pgdyno.journal.session.settings import read_gucs
from pgdyno.journal.writers.program import program_writers
from pgdyno.levers.engine.durability import check_durability, check_found
from pgdyno.model.errors import (
    PermissionNotGivenError,
    PgdynoError,
    RefusedError,
    UsageError,
)
from pgdyno.model.plans.journal import ApplyResult
from pgdyno.model.plans.plan import PER_APPLICATION, SETTING, Change, Effect, Plan
from pgdyno.model.servers.server import Server
from pgdyno.server.connection.connection import describe

StartCheck: TypeAlias = Callable[[Server, Mapping[str, str]], None]
"""Tries whether a server would start with these settings. Raises: SettingError, ServerStartError."""


@dataclass(frozen=True)
class ApplyRequest:
    """A plan with permissions. ``is_persisted``: host changes survive a reboot.

    ``start_check`` None: the server's programs are not accessible; ``is_start_tried``: somebody has tried it
    already. ``planned_on`` is the server that the plan was made for, as ``describe`` writes it; None if that
    is not to be compared. ``apply_id`` is what its receipts have in common.
    """

    plan: Plan
    is_persisted: bool = False
    allow_restart: bool = False
    is_standby_order_kept: bool = False
    start_check: StartCheck | None = None
    is_start_tried: bool = False
    planned_on: str | None = None
    steps: Steps = no_steps
    apply_id: str = field(default_factory=new_apply_id)


@dataclass(frozen=True)
class _Ready:
    """A plan that passed every check, with the original values."""

    files: ServerFiles | None
    prepared: tuple[Prepared, ...]
    statements: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def restarts(self) -> int:
        return int(any(one.change.effect is Effect.RESTART for one in self.prepared))


def apply_plan(access: ServerAccess, request: ApplyRequest) -> ApplyResult:
    """Carry out a plan with a receipt for every change.

    Raises: RefusedError, SettingError, UsageError, LockHeldError before anything is changed; any other error
    after everything was restored; StillChangedError if that was not possible.
    """
    with open_journal(access.journal_directory) as journal, locked_session(access.connect) as session:
        ready = _checked(access, request, session, journal.read())
        result = _result(access, request, session, ready)
        if not ready.prepared:
            return replace(result, restarts=0)
        run = ApplyRun(
            apply_id=request.apply_id,
            journal=journal,
            host=HostRun(journal, access.host_writers, request.steps),
            session=session,
            files=ready.files,
            restarter=access.restarter_of(session) if request.allow_restart else None,
            revert_command=access.revert_command,
            steps=request.steps,
        )
        try:
            receipts = run.carry_out(ready.prepared)
            gucs = read_gucs(session.connection)
        except (PgdynoError, KeyboardInterrupt) as error:
            run.roll_back(error)
            raise
        outcomes = tuple(outcome(receipt, gucs.get(receipt.key)) for receipt in receipts)
        return replace(result, apply_id=run.apply_id, outcomes=outcomes)


def preview_apply(access: ServerAccess, request: ApplyRequest) -> ApplyResult:
    """Make every check except the one for permission to restart.

    Describe the effect that ``apply_plan`` would have.

    Changes nothing, and writes no journal.
    """
    contents = read_journal(access.journal_directory)
    with reading_session(access.connect) as session:
        ready = _checked(access, request, session, contents, is_preview=True)
        return replace(_result(access, request, session, ready), is_dry_run=True)


def _checked(
    access: ServerAccess,
    request: ApplyRequest,
    session: Session,
    contents: Contents,
    *,
    is_preview: bool = False,
) -> _Ready:
    """Make every check and read the original values. Changes nothing."""
    _check_server(request, session)
    check_unfinished(contents, session.target, access.revert_command)
    check_owners(Tree(access.host_root), request.plan.host_changes)
    server = access.inspect(session.connection)
    check_found(server, session.target.address)
    files = access.files(session)
    _check_plan(request, server, files)
    changes = tuple(_as_it_takes_effect_here(line.change, server) for line in request.plan.lines)
    restarting = tuple(change.key for change in changes if change.effect is Effect.RESTART)
    if not is_preview:
        _check_restart(access, request, restarting)
    check_privileges(session.connection, request.plan.settings)
    edits = read_foreign_edits(session.connection)
    edits.check(with_restart=bool(restarting))
    writers = running_writers(session, files)
    persisted = _persisted(access, request, session, contents)
    changes += persisted.changes
    prepared = prepare(changes, {**writers, **access.host_writers})
    for change in (*request.plan.host_changes, *persisted.changes):
        access.host_writers[change.kind].check(change.key)
    for program in request.plan.programs:
        program_writers(session.connect)[program.kind].check(program.key)
    for one in prepared:  # whether ALTER SYSTEM can express the way back is known before it is needed
        if one.change.kind == SETTING:
            restore_statement(one.change.key, one.found.value)
    statements = tuple(map(making_statement, changes))
    if request.plan.settings and request.start_check is not None:
        request.start_check(server, request.plan.settings)
    has_untried_start = bool(restarting) and request.start_check is None and not request.is_start_tried
    notes = _notes(files, edits.unknown, has_untried_start=has_untried_start)
    return _Ready(files, prepared, statements, (*notes, *persisted.notes))


def _persisted(
    access: ServerAccess, request: ApplyRequest, session: Session, contents: Contents
) -> Persisted:
    if not request.is_persisted:
        return Persisted()
    where = Persisting(Tree(access.host_root), access.host_writers, contents, session.target)
    return where.files(request.plan.host_changes)


def _check_server(request: ApplyRequest, session: Session) -> None:
    """Refuse a plan for another server: a DSN with several hosts may lead elsewhere each time."""
    here = describe(session.connection)
    if request.planned_on not in (None, here):
        raise RefusedError(
            "the plan was made for another server than the one that answers now",
            detail=f"planned for {request.planned_on}; now {here}",
            hint="name one server, by an address of its own: --dsn 'host=… port=…'",
        )


def _check_plan(request: ApplyRequest, server: Server, files: ServerFiles | None) -> None:
    wanted = request.plan.settings
    check_durability(wanted, server)
    _check_that_it_is_for_all(wanted)
    check_managers(server.managers, files.patroni_file() if files else None)
    check_settings(server.settings, wanted)
    check_standby_order(server, wanted, is_order_kept=request.is_standby_order_kept)


def _check_that_it_is_for_all(wanted: Mapping[str, str]) -> None:
    for name in sorted(PER_APPLICATION & wanted.keys()):
        raise RefusedError(
            f"{name} = {wanted[name]} is not set for a whole server",
            detail="it suits the statements of one application, and may harm those of another",
            hint=f"ALTER ROLE name SET {name} = {wanted[name]}; back: ALTER ROLE name RESET {name}",
        )


def _as_it_takes_effect_here(change: Change, server: Server) -> Change:
    """Return the change with the effect that it has on this server.

    The plan may be from another day or server.
    """
    if change.kind != SETTING:
        return change
    needs_restart = server.settings[change.key].needs_restart
    return replace(change, effect=Effect.RESTART if needs_restart else Effect.RELOAD)


def _check_restart(access: ServerAccess, request: ApplyRequest, keys: tuple[str, ...]) -> None:
    if keys and not request.allow_restart:
        raise PermissionNotGivenError(
            f"{len(keys)} of {len(request.plan.lines)} changes need a restart, which was not allowed",
            detail=", ".join(keys),
            hint="--allow-restart allows one restart",
        )
    if keys and access.restarter is None:
        raise UsageError(
            "the plan needs a restart, and pgdyno does not know how to restart this server",
            detail=", ".join(keys),
            hint="--restart-command 'pg_ctlcluster 15 main restart', or the command that restarts it here",
        )


def _notes(
    files: ServerFiles | None, unknown_edits: str | None, *, has_untried_start: bool
) -> tuple[str, ...]:
    notes = []
    if files is None:
        notes.append("the server's files are not accessible: a revert uses ALTER SYSTEM alone")
    if unknown_edits is not None:
        notes.append(f"edits of others in the configuration files could not be looked for: {unknown_edits}")
    if has_untried_start:
        notes.append("the start was not tried beforehand: the server's programs are not accessible")
    return tuple(notes)


def _result(access: ServerAccess, request: ApplyRequest, session: Session, ready: _Ready) -> ApplyResult:
    """Return the facts known before any change."""
    return ApplyResult(
        apply_id=None,
        target=session.target.address,
        outcomes=(),
        statements=ready.statements,
        restarts=ready.restarts,
        notes=ready.notes,
        findings=request.plan.findings,
        revert_command=access.revert_command,
    )
