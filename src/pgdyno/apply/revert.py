"""``pgdyno revert``: restore the values from before the last apply, or before all of them.

A key that someone else has changed since is left alone unless the user decides otherwise: the revert is then
reported as incomplete, with exit status 3. The same holds for an original value that waits for a restart that
is not allowed. A later revert continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pgdyno.apply.configuration.standby_order import check_standby_order
from pgdyno.apply.ledger.log import Contents, Journal, open_journal, read_journal
from pgdyno.apply.ledger.places import candidate_directories, other_journals
from pgdyno.apply.runs.changes import Undone
from pgdyno.apply.runs.host_run import HostRun, drift_on_host, receipts_of_host
from pgdyno.apply.runs.manual_commands import outcome, restoring_edits, restoring_statements, still_changed
from pgdyno.apply.runs.server_writers import RunningWriters, running_writers, stopped_writers
from pgdyno.apply.runs.stopped_server import Stopped, files_of_named, find_stopped, receipts_of_named
from pgdyno.apply.runs.undo import Undoing, find_drift, other_programs, restore_all, undo
from pgdyno.apply.session.access import ServerAccess, Steps, no_steps
from pgdyno.apply.session.restart import command_restarter
from pgdyno.apply.session.session import Session, locked_session, reading_session
from pgdyno.apply.session.settings import read_gucs
from pgdyno.apply.session.target import bound_to
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.program import former_programs
from pgdyno.base.errors import (
    ConnectionFailedError,
    LockHeldError,
    PgdynoError,
    StillChangedError,
    UsageError,
    as_pgdyno_error,
)
from pgdyno.model.plans.journal import Drift, OnDrift, Receipt, RevertResult, Target, restart_options
from pgdyno.model.plans.plan import PROGRAM_KINDS
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import STANDBY_FIRST_SETTINGS

# How long to wait for a server that a killed pgdyno was restarting: while a postmaster exists, which recovers
# or waits for its clients; and without one, between stop and start.
_COMING_UP_S = 60.0
_BETWEEN_S = 5.0
_POLL_S = 0.2


@dataclass(frozen=True)
class RevertRequest:
    """A request to revert, with permissions. ``is_all``: to the state before the first apply.

    ``apply_id``: the apply to undo; if it changed nothing, nothing is undone. None: the last one.
    """

    is_all: bool = False
    apply_id: str | None = None
    allow_restart: bool = False
    on_drift: OnDrift = OnDrift.SKIP
    is_standby_order_kept: bool = False
    steps: Steps = no_steps


def revert(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Restore the original values, newest change first. Nothing to revert is not an error.

    A server that is down is restored through its files if they are accessible, and started if a restart is
    allowed.
    Raises: LockHeldError, RefusedError for the order of standbys, and UsageError before any change;
    StillChangedError if the revert could not be finished; ConnectionFailedError if there was nothing to
    revert.
    """
    with open_journal(access.journal_directory) as journal:
        tried = _try_running(access, request, journal)
        if isinstance(tried, RevertResult):
            return tried
        stopped = find_stopped(access, journal.read(), tried)
        access = _restarted_as_before(access, stopped.receipts)
        if request.allow_restart and access.restarter is None:
            raise _no_way_to_restart()
        result = _revert_files(access, request, journal, stopped)
        if access.restarter is None or not request.allow_restart:
            return result
        connect = bound_to(stopped.target, access.connect, by_address=False)
        try:
            replace(access.restarter, connect=connect).restart()
        except (Exception, KeyboardInterrupt) as error:
            failure = as_pgdyno_error(error)
            raise StillChangedError(
                f"{failure.message}; the server may be down",
                detail=failure.detail,
                hint=f"its files are restored; make sure it runs, then run {access.revert_command} again",
            ) from error
        running = _revert_running(access, request, journal)
        return replace(running, restarts=running.restarts + 1)


def give_back(access: ServerAccess, request: RevertRequest, lock_wait_s: float = 60.0) -> None:
    """Undo a temporary apply; wait at most ``lock_wait_s`` while another pgdyno holds the journal.

    Raises: StillChangedError if others changed a setting since, or the journal was not released in
    time; the errors of revert.
    """
    deadline_s = time.monotonic() + lock_wait_s
    result: RevertResult | None = None
    while result is None:
        try:
            result = revert(access, request)
        except LockHeldError as error:
            try:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(_POLL_S)
            except (LockHeldError, KeyboardInterrupt) as ended:
                raise _not_given_back(access, request, as_pgdyno_error(ended)) from error
    if not result.is_complete:
        raise StillChangedError(
            "someone else changed the server in the meantime",
            detail="the settings that they changed were left alone",
            hint="pgdyno status shows them; pgdyno revert --drifted=overwrite restores the original values",
        )


def _not_given_back(access: ServerAccess, request: RevertRequest, error: PgdynoError) -> PgdynoError:
    """Return the error for a revert that did not start: ``error`` itself if nothing is to revert."""
    receipts = read_journal(access.journal_directory).open
    if not any(one.apply_id == request.apply_id for one in receipts):
        return error
    return StillChangedError(
        f"{error.message}; the temporary configuration is still in force",
        detail=error.detail,
        hint=f"when the other pgdyno has ended: {access.revert_command}",
    )


def preview_revert(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Describe the effect of ``revert``. Changes nothing."""
    contents = read_journal(access.journal_directory)
    with reading_session(access.look) as session:
        writers = running_writers(session, access.files(session))
        receipts = _chosen(_receipts_of(contents, session.target), request)
        drifts = tuple(drift for one in receipts if (drift := _drift(access, writers, one)) is not None)
        restarts = int(bool(_restart_keys(session, receipts)))
        done = Undone(receipts, drifts, (), restarts)
        return replace(_result(access, session, done, contents), is_dry_run=True)


def _drift(access: ServerAccess, writers: RunningWriters, receipt: Receipt) -> Drift | None:
    if receipt.is_on_host:
        return drift_on_host(access.host_writers[receipt.change.kind], receipt)
    return find_drift(writers[receipt.change.kind], receipt)


def _try_running(
    access: ServerAccess, request: RevertRequest, journal: Journal
) -> RevertResult | ConnectionFailedError:
    """Revert over a connection, or return why that is not possible."""
    contents = journal.read()
    if failure := _connection_failure(access, contents):
        return failure
    try:
        return _revert_running(access, request, journal)
    except (ConnectionFailedError, StillChangedError) as error:
        if not (_is_coming_up(access, contents) and _has_lost_connection(error)):
            raise
    # The restart requested by a killed pgdyno has just ended our session. That happens only once.
    failure = _connection_failure(access, contents)
    return failure or _revert_running(access, request, journal)


def _revert_running(access: ServerAccess, request: RevertRequest, journal: Journal) -> RevertResult:
    contents = journal.read()
    with locked_session(access.connect) as session:
        receipts = _chosen(_receipts_of(contents, session.target), request)
        access = _restarted_as_before(access, receipts)
        _check_restart(access, session, receipts, request)
        _check_order(access, session, receipts, request)
        _check_programs(access, session, receipts, request)
        undoing = Undoing(
            journal=journal,
            session=session,
            writer=AlterSystemWriter(session, access.files(session)),
            restarter=access.restarter_of(session) if request.allow_restart else None,
            on_drift=request.on_drift,
            steps=request.steps,
        )
        with reporting_leftovers(access, journal, receipts, lambda: not session.connection.closed):
            try:
                on_host = _undo_on_host(access, request, journal, receipts)
            finally:
                on_server = undo(undoing, [one for one in receipts if not one.is_on_host])
            done = _together(on_server, on_host)
        return _result(access, session, done, contents)


def _revert_files(
    access: ServerAccess, request: RevertRequest, journal: Journal, stopped: Stopped
) -> RevertResult:
    """Restore the files of a server that is down. Raises: StillChangedError if that fails."""
    receipts = _chosen(_receipts_of(journal.read(), stopped.target), request)
    on_server = [one for one in receipts if not one.is_on_host]
    writers = stopped_writers(stopped.files)
    with reporting_leftovers(access, journal, receipts, lambda: False):
        try:
            on_host = _undo_on_host(access, request, journal, receipts)
        finally:
            done = restore_all(journal, writers, on_server, on_drift=request.on_drift, steps=request.steps)
        done.check()
    return RevertResult(
        target=str(stopped.files.path),
        outcomes=tuple(outcome(receipt) for receipt in (*on_server, *on_host.receipts)),
        statements=(*restoring_edits(done.restored), *restoring_statements(on_host.receipts)),
        drifted=(*done.drifted, *on_host.drifted),
        pending_restart=tuple(sorted(receipt.key for receipt in done.restored)),
        damage=journal.read().damage,
        notes=(
            f"the server is down: its files are restored; start it, then run {access.revert_command} again",
        ),
        revert_command=access.revert_command,
        restart_options=restart_options(access.restart_command),
    )


@contextmanager
def reporting_leftovers(
    access: ServerAccess, journal: Journal, receipts: Sequence[Receipt], is_server_up: Callable[[], bool]
) -> Iterator[None]:
    """Turn errors and interrupts of a revert into a StillChangedError while receipts are open."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        open_ids = {receipt.id for receipt in journal.read().open}
        left = [receipt for receipt in receipts if receipt.id in open_ids]
        if not left:
            raise
        raise still_changed(
            as_pgdyno_error(error), left, is_server_up=is_server_up(), revert_command=access.revert_command
        ) from error


def _restarted_as_before(access: ServerAccess, receipts: Iterable[Receipt]) -> ServerAccess:
    """Return an access with apply's newest restart command, unless the user has named one."""
    command = next((one.restart_command for one in receipts if one.restart_command), ())
    if access.restarter is not None or not command:
        return access
    return replace(access, restarter=command_restarter(command, access.connect))


def _check_restart(
    access: ServerAccess, session: Session, receipts: Sequence[Receipt], request: RevertRequest
) -> None:
    """Refuse to begin if a restart is needed and allowed, but no restart command is known."""
    if not request.allow_restart or access.restarter is not None:
        return
    if keys := _restart_keys(session, receipts):
        raise _no_way_to_restart(", ".join(keys))


def _check_programs(
    access: ServerAccess, session: Session, receipts: Sequence[Receipt], request: RevertRequest
) -> None:
    """Refuse to restart a healthy server with former programs that can no longer run it.

    They may be gone by now, or the server may use features that only the present ones have.
    Raises: RefusedError, ServerError.
    """
    check = access.programs_check
    if check is None or not request.allow_restart or not other_programs(session, receipts):
        return
    oldest = [one for one in receipts if one.change.kind in PROGRAM_KINDS][-1]
    check(session, access.files(session), former_programs(oldest.found))


def _no_way_to_restart(keys: str | None = None) -> UsageError:
    return UsageError(
        "undoing this needs a restart, but pgdyno does not know how to restart this server",
        detail=keys,
        hint="use --restart-command 'systemctl restart postgresql', or this server's restart command; or "
        "omit --allow-restart, restart it yourself, and run pgdyno revert again",
    )


def _restart_keys(session: Session, receipts: Sequence[Receipt]) -> list[str]:
    """Return the keys that need a restart to get their original values."""
    gucs, others = read_gucs(session.connection), other_programs(session, receipts)
    return [one.key for one in receipts if one.key in others or _needs_restart(one, gucs)]


def _needs_restart(receipt: Receipt, gucs: Mapping[str, Guc]) -> bool:
    guc = gucs.get(receipt.key)
    return guc is not None and guc.needs_restart and guc.setting != receipt.found.state.get("setting")


def _receipts_of(contents: Contents, target: Target) -> tuple[Receipt, ...]:
    """Return the open receipts of a server, and of the machine for this server's plans, newest first."""
    on_host = {receipt.id for receipt in receipts_of_host(contents.receipts, target)}
    return tuple(
        receipt
        for receipt in reversed(contents.open)
        if receipt.id in on_host or receipt.target.is_same_as(target)
    )


def _undo_on_host(
    access: ServerAccess, request: RevertRequest, journal: Journal, receipts: Sequence[Receipt]
) -> Undone:
    """Restore the machine, before a restarted server could use the pool's huge pages."""
    run = HostRun(journal, access.host_writers, request.steps)
    return run.undo([one for one in receipts if one.is_on_host], request.on_drift)


def _together(first: Undone, second: Undone) -> Undone:
    return Undone(
        receipts=(*first.receipts, *second.receipts),
        drifted=(*first.drifted, *second.drifted),
        pending_restart=first.pending_restart,
        restarts=first.restarts,
    )


def _chosen(receipts: tuple[Receipt, ...], request: RevertRequest) -> tuple[Receipt, ...]:
    """Return the receipts to revert, newest first: those of one apply, or all."""
    if request.is_all or not receipts:
        return receipts
    chosen = request.apply_id or receipts[0].apply_id
    return tuple(one for one in receipts if one.apply_id == chosen)


def _check_order(
    access: ServerAccess, session: Session, receipts: tuple[Receipt, ...], request: RevertRequest
) -> None:
    """Refuse original values that would stop a standby, as for any other change."""
    former = {one.key: one.found.state["setting"] for one in receipts if not one.is_on_host}
    if not former.keys().isdisjoint(STANDBY_FIRST_SETTINGS):
        check_standby_order(
            access.inspect(session.connection), former, is_order_kept=request.is_standby_order_kept
        )


def _is_coming_up(access: ServerAccess, contents: Contents) -> bool:
    """Whether a restart with unknown outcome was requested."""
    return any(one.apply_id in contents.restarting for one in receipts_of_named(access, contents))


def _has_lost_connection(error: PgdynoError) -> bool:
    return isinstance(error, ConnectionFailedError) or isinstance(error.__cause__, ConnectionFailedError)


def _connection_failure(access: ServerAccess, contents: Contents) -> ConnectionFailedError | None:
    """Return why the server does not accept connections; None if it does."""
    files = files_of_named(access, receipts_of_named(access, contents))
    started_s = time.monotonic()
    while True:
        try:
            access.connect().close()
        except ConnectionFailedError as error:
            has_postmaster = files is None or files.has_postmaster()
            limit_s = _COMING_UP_S if has_postmaster else _BETWEEN_S
            if not _is_coming_up(access, contents) or time.monotonic() - started_s > limit_s:
                return error
        else:
            return None
        time.sleep(_POLL_S)


def _result(access: ServerAccess, session: Session, done: Undone, contents: Contents) -> RevertResult:
    gucs = read_gucs(session.connection)
    mine = {receipt.id for receipt in _receipts_of(contents, session.target)}
    others = [receipt for receipt in contents.open if receipt.id not in mine]
    elsewhere = () if done.receipts else other_journals(access.journal_directory, candidate_directories())
    return RevertResult(
        target=session.target.address,
        outcomes=tuple(outcome(receipt, gucs.get(receipt.key)) for receipt in done.receipts),
        statements=restoring_statements(done.receipts),
        drifted=done.drifted,
        pending_restart=done.pending_restart,
        damage=contents.damage,
        restarts=done.restarts,
        notes=tuple(_staying(others)),
        other_journals=elsewhere,
        revert_command=access.revert_command,
        restart_options=restart_options(access.restart_command),
    )


def _staying(others: Sequence[Receipt]) -> Iterator[str]:
    """Yield notes on open receipts that are not of this server."""
    of_machine = sum(1 for one in others if one.is_of_machine_alone)
    if len(others) > of_machine:
        yield f"{len(others) - of_machine} changes on other servers stay applied: pgdyno status"
    if of_machine:
        yield f"{of_machine} changes of this machine stay applied: pgdyno revert --host-only"
