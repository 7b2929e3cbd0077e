"""``pgdyno revert``: restore what was found before the last apply, or before all of them.

A key that somebody else has changed since is left alone unless the user says otherwise: the revert is then
incomplete, says so, and the command ends with 3. The same holds for a former value that waits for a
restart nobody has allowed. Reverting again later goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.journal.access import ServerAccess, Steps, no_steps
from pgdyno.journal.by_hand import outcome, restoring_edits, restoring_statements, still_changed
from pgdyno.journal.log import Contents, Journal, open_journal, read_journal
from pgdyno.journal.server_files import ServerFiles
from pgdyno.journal.session import Session, locked_session, reading_session
from pgdyno.journal.settings import read_gucs
from pgdyno.journal.standby_order import ORDERED_SETTINGS, check_standby_order
from pgdyno.journal.target import read_target
from pgdyno.journal.undo import Undoing, Undone, find_drift, restore_all, undo
from pgdyno.journal.writers.alter_system import AlterSystemWriter
from pgdyno.journal.writers.auto_conf_file import AutoConfFileWriter
from pgdyno.model.errors import ConnectionFailedError, PgdynoError, StillChangedError
from pgdyno.model.guc import Guc
from pgdyno.model.journal import OnDrift, Receipt, RevertResult, Target
from pgdyno.server.inspection import inspect_server

# For a server whose restart was asked for by a pgdyno that was killed meanwhile: while there is a postmaster
# that recovers or waits for its clients, and between its stop and its start.
_COMING_UP_S = 60.0
_BETWEEN_S = 5.0
_POLL_S = 0.2


@dataclass(frozen=True)
class RevertRequest:
    """What to revert, and what is allowed for it. ``is_all`` goes back before the first apply."""

    is_all: bool = False
    allow_restart: bool = False
    on_drift: OnDrift = OnDrift.SKIP
    is_standby_order_kept: bool = False
    steps: Steps = no_steps


def revert(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Restore what was found, newest change first. Nothing to revert is no error.

    A server that is down is restored through its files where they are within reach, and started if a
    restart is allowed.
    Raises: LockHeldError, and RefusedError for the order of standbys, before anything is changed;
    StillChangedError if it could not be finished; ConnectionFailedError if nothing was to revert anyway.
    """
    with open_journal(access.journal_directory) as journal:
        tried = _try_running(access, request, journal)
        if isinstance(tried, RevertResult):
            return tried
        result = _revert_files(access, request, journal, tried)
        if not request.allow_restart or access.restarter is None:
            return result
        try:
            access.restarter.restart()
        except PgdynoError as error:
            raise StillChangedError(
                f"{error.message}; the server is down",
                detail=error.detail,
                hint="its files are restored; start it, then run pgdyno revert once more",
            ) from error
        running = _revert_running(access, request, journal, journal.read())
        return replace(running, restarts=running.restarts + 1)


def preview_revert(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Say what ``revert`` would do. Changes nothing."""
    contents = read_journal(access.journal_directory)
    with reading_session(access.connect) as session:
        target = read_target(session.connection)
        writer = AlterSystemWriter(session, access.files(session.connection, target))
        receipts = _chosen(contents, target, request)
        drifts = tuple(drift for receipt in receipts if (drift := find_drift(writer, receipt)) is not None)
        gucs = read_gucs(session.connection)
        restarts = int(any(_takes_restart(receipt, gucs) for receipt in receipts))
        done = Undone(receipts, drifts, (), restarts)
        return replace(_result(session, target, done, contents), is_dry_run=True)


def _try_running(
    access: ServerAccess, request: RevertRequest, journal: Journal
) -> RevertResult | ConnectionFailedError:
    """Revert over a connection, or return why there is none."""
    contents = journal.read()
    if failure := _connection_failure(access, contents):
        return failure
    try:
        return _revert_running(access, request, journal, contents)
    except (ConnectionFailedError, StillChangedError) as error:
        if not (_is_coming_up(contents) and _has_lost_connection(error)):
            raise
    # A restart that a killed pgdyno had asked for has just ended our session. It ends one only.
    failure = _connection_failure(access, contents)
    return failure or _revert_running(access, request, journal, journal.read())


def _revert_running(
    access: ServerAccess, request: RevertRequest, journal: Journal, contents: Contents
) -> RevertResult:
    with locked_session(access.connect) as session:
        target = read_target(session.connection)
        receipts = _chosen(contents, target, request)
        _check_order(session, receipts, request)
        undoing = Undoing(
            journal=journal,
            session=session,
            writer=AlterSystemWriter(session, access.files(session.connection, target)),
            restarter=access.restarter if request.allow_restart else None,
            on_drift=request.on_drift,
            steps=request.steps,
        )
        try:
            done = undo(undoing, receipts)
        except PgdynoError as error:
            raise still_changed(error, receipts, is_server_up=not session.connection.closed) from error
        return _result(session, target, done, contents)


def _revert_files(
    access: ServerAccess, request: RevertRequest, journal: Journal, failure: ConnectionFailedError
) -> RevertResult:
    """Restore the files of a server that takes no connections.

    Raises: ConnectionFailedError if nothing is open; StillChangedError if the files are out of reach.
    """
    contents = journal.read()
    if not contents.open:
        raise failure
    files = _files_of_stopped(access, contents)
    if files is None or files.has_postmaster():
        raise still_changed(failure, contents.open[::-1], is_server_up=False) from failure
    target = files.target()
    receipts = _chosen(contents, target, request)
    writer = AutoConfFileWriter(files)
    try:
        restored, drifted = restore_all(
            journal, {writer.kind: writer}, receipts, on_drift=request.on_drift, steps=request.steps
        )
    except PgdynoError as error:
        raise still_changed(error, receipts, is_server_up=False, file=str(files.path)) from error
    return RevertResult(
        target=target.address,
        outcomes=tuple(outcome(receipt) for receipt in receipts),
        statements=restoring_edits(restored),
        drifted=drifted,
        pending_restart=tuple(sorted(receipt.key for receipt in restored)),
        damage=contents.damage,
        notes=("the server is down: its files are restored; start it, then run pgdyno revert once more",),
    )


def _takes_restart(receipt: Receipt, gucs: Mapping[str, Guc]) -> bool:
    guc = gucs.get(receipt.key)
    return guc is not None and guc.needs_restart and guc.setting != receipt.found.state.get("setting")


def _chosen(contents: Contents, target: Target, request: RevertRequest) -> tuple[Receipt, ...]:
    """Return the open receipts to revert, newest first: those of the last apply, or all."""
    receipts = [receipt for receipt in reversed(contents.open) if receipt.target.is_same_as(target)]
    if not request.is_all and receipts:
        receipts = [receipt for receipt in receipts if receipt.apply_id == receipts[0].apply_id]
    return tuple(receipts)


def _check_order(session: Session, receipts: tuple[Receipt, ...], request: RevertRequest) -> None:
    """Refuse to go back where a standby would stop: for it that is a change like any other."""
    former = {receipt.key: receipt.found.state["setting"] for receipt in receipts}
    if not former.keys().isdisjoint(ORDERED_SETTINGS):
        server = inspect_server(session.connection)
        check_standby_order(server, former, is_order_kept=request.is_standby_order_kept)


def _is_coming_up(contents: Contents) -> bool:
    """Whether a restart was asked for, and nobody knows how it ended."""
    return any(receipt.apply_id in contents.restarting for receipt in contents.open)


def _has_lost_connection(error: PgdynoError) -> bool:
    return isinstance(error, ConnectionFailedError) or isinstance(error.__cause__, ConnectionFailedError)


def _connection_failure(access: ServerAccess, contents: Contents) -> ConnectionFailedError | None:
    """Return why the server takes no connections; None if it does."""
    files = _files_of_stopped(access, contents)
    started_s = time.monotonic()
    while True:
        try:
            access.connect().close()
        except ConnectionFailedError as error:
            has_postmaster = files is None or files.has_postmaster()
            limit_s = _COMING_UP_S if has_postmaster else _BETWEEN_S
            if not _is_coming_up(contents) or time.monotonic() - started_s > limit_s:
                return error
        else:
            return None
        time.sleep(_POLL_S)


def _files_of_stopped(access: ServerAccess, contents: Contents) -> ServerFiles | None:
    """Return the files of the one server that open receipts are about; None if they are not within reach."""
    places = {receipt.target.data_directory for receipt in contents.open}
    if access.data_directory is None and (len(places) != 1 or None in places):
        return None
    files = ServerFiles(access.data_directory or Path(str(places.pop())))
    identities = {receipt.target.identity for receipt in contents.open}
    try:
        return files if files.system_identifier() in identities else None
    except PgdynoError:
        return None


def _result(session: Session, target: Target, done: Undone, contents: Contents) -> RevertResult:
    gucs = read_gucs(session.connection)
    others = [receipt for receipt in contents.open if not receipt.target.is_same_as(target)]
    notes = [f"{len(others)} changes on other servers stay applied: pgdyno status"] if others else []
    return RevertResult(
        target=target.address,
        outcomes=tuple(outcome(receipt, gucs.get(receipt.key)) for receipt in done.receipts),
        statements=restoring_statements(done.receipts),
        drifted=done.drifted,
        pending_restart=done.pending_restart,
        damage=contents.damage,
        restarts=done.restarts,
        notes=tuple(notes),
    )
