"""Apply changes to a server and its machine: all of them or none.

Order: all checks → receipts on disk → the machine → ALTER SYSTEM → reload, and restart if allowed → read
back. If a step fails, the original values are restored at once. Only if that fails too, something stays
changed; the error names it, with the commands to restore it by hand.

    with open_for_apply(access, apply_id) as run:
        checked = run.opened.check(changes)
        outcomes = run.carry_out(checked.prepared)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pgdyno.apply.configuration.auto_conf import restore_statement
from pgdyno.apply.configuration.foreign_edits import read_foreign_edits
from pgdyno.apply.ledger.log import Contents, Journal, open_journal, read_journal
from pgdyno.apply.runs.changes import (
    Prepared,
    Undone,
    check_unfinished,
    make_changes,
    prepare,
    read_back,
    receipts_for,
    write_receipts,
)
from pgdyno.apply.runs.host_run import HostRun, host_target
from pgdyno.apply.runs.manual_commands import making_statement, outcome, still_changed
from pgdyno.apply.runs.server_writers import running_writers, stopped_writers
from pgdyno.apply.runs.undo import Undoing, restore_all, undo
from pgdyno.apply.session.access import ServerAccess, Steps, no_steps
from pgdyno.apply.session.ownership import check_privileges
from pgdyno.apply.session.restart import reload_and_wait
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import Session, locked_session, reading_session
from pgdyno.apply.session.settings import read_gucs
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.program import program_writers
from pgdyno.base.errors import (
    ConnectionFailedError,
    ServerError,
    ServerStartError,
    StillChangedError,
    as_pgdyno_error,
)
from pgdyno.base.ports import Restarter
from pgdyno.model.plans.journal import OnDrift, Outcome, Receipt
from pgdyno.model.plans.plan import HOST_KINDS, PROGRAM_KINDS, SETTING, Change, Effect
from pgdyno.postgres.server import Server


@dataclass(frozen=True)
class Checked:
    """Changes that can be made and undone, with the original values and the statements for the changes.

    ``unknown_edits``: why pending edits by others could not be checked; None: they were checked.
    """

    prepared: tuple[Prepared, ...]
    statements: tuple[str, ...]
    unknown_edits: str | None

    @property
    def restarting(self) -> tuple[str, ...]:
        """The keys that need a restart."""
        return tuple(one.change.key for one in self.prepared if one.change.effect is Effect.RESTART)


@dataclass(frozen=True)
class Opened:
    """A server that may be changed, without an unfinished apply. ``files`` None: not accessible."""

    access: ServerAccess
    session: Session
    contents: Contents
    server: Server
    files: ServerFiles | None

    def check(self, changes: Iterable[Change]) -> Checked:
        """Check that the changes can be made and undone, and read the original values.

        Raises: PrivilegeError, RefusedError for edits by others, UsageError, SettingError. Changes nothing.
        """
        changes = tuple(_with_effect_on(self.server, change) for change in changes)
        check_privileges(
            self.session.connection, {one.key: one.value for one in changes if one.kind == SETTING}
        )
        edits = read_foreign_edits(self.session.connection)
        edits.check(with_restart=any(one.effect is Effect.RESTART for one in changes))
        writers = {**running_writers(self.session, self.files), **self.access.host_writers}
        prepared = prepare(changes, writers)
        for one in prepared:
            self._check_restorable(one)
        return Checked(prepared, tuple(map(making_statement, changes)), edits.unknown)

    def _check_restorable(self, one: Prepared) -> None:
        kind, key = one.change.kind, one.change.key
        if kind == SETTING:  # raises if ALTER SYSTEM cannot express the original value
            restore_statement(key, one.found.value)
        elif kind in PROGRAM_KINDS:
            program_writers(self.session.connect)[kind].check(key)
        else:
            self.access.host_writers[kind].check(key)


@contextmanager
def open_for_preview(access: ServerAccess) -> Iterator[Opened]:
    """Open a server to check changes, without locks. Raises: as ``open_for_apply``."""
    contents = read_journal(access.journal_directory)
    with reading_session(access.look) as session:
        yield _opened(access, session, contents)


@contextmanager
def open_for_apply(
    access: ServerAccess, apply_id: str, *, allow_restart: bool = False, steps: Steps = no_steps
) -> Iterator[ApplyRun]:
    """Open a server for an apply, with its lock and the journal's lock held.

    Raises: LockHeldError; RefusedError if an earlier apply is unfinished; ConnectionFailedError.
    """
    with open_journal(access.journal_directory) as journal, locked_session(access.connect) as session:
        opened = _opened(access, session, journal.read())
        yield ApplyRun(opened, journal, apply_id, allow_restart=allow_restart, steps=steps)


def _opened(access: ServerAccess, session: Session, contents: Contents) -> Opened:
    check_unfinished(contents, session.target, access.revert_command)
    return Opened(access, session, contents, access.inspect(session.connection), access.files(session))


def _with_effect_on(server: Server, change: Change) -> Change:
    """Return the change with its effect on this server: the plan may be from another day or server."""
    if change.kind != SETTING:
        return change
    needs_restart = server.settings[change.key].needs_restart
    return replace(change, effect=Effect.RESTART if needs_restart else Effect.RELOAD)


@dataclass(frozen=True)
class ApplyRun:
    """One apply, from its first receipt to its end."""

    opened: Opened
    journal: Journal
    apply_id: str
    allow_restart: bool
    steps: Steps

    def carry_out(self, prepared: Sequence[Prepared]) -> tuple[Outcome, ...]:
        """Make the changes, and read them back.

        Raises: any error after everything was restored; StillChangedError if that was not possible.
        """
        try:
            receipts = self._change(prepared)
            gucs = read_gucs(self._session.connection)
        except (Exception, KeyboardInterrupt) as error:
            self._roll_back(error)
            raise
        return tuple(outcome(receipt, gucs.get(receipt.key)) for receipt in receipts)

    @property
    def _session(self) -> Session:
        return self.opened.session

    @property
    def _host(self) -> HostRun:
        return HostRun(self.journal, self.opened.access.host_writers, self.steps)

    @property
    def _restarter(self) -> Restarter | None:
        return self.opened.access.restarter_of(self._session) if self.allow_restart else None

    def _change(self, prepared: Sequence[Prepared]) -> tuple[Receipt, ...]:
        """Write all receipts, make all changes, put them into effect, and read them back.

        The machine comes first: a restarted server allocates its huge pages from the pool.
        """
        self.steps("checked")
        receipts = self._receipts(prepared)
        write_receipts(self.journal, receipts, self.steps)
        on_host = self._host.carry_out([one for one in receipts if one.is_on_host])
        on_server = [one for one in receipts if not one.is_on_host]
        needs_restart = any(one.change.effect is Effect.RESTART for one in receipts)
        return (*on_host, *self._change_server(on_server, needs_restart=needs_restart))

    def _receipts(self, prepared: Sequence[Prepared]) -> tuple[Receipt, ...]:
        """Return the receipts for the machine, then those for the server."""
        on_host = [one for one in prepared if one.change.kind in HOST_KINDS]
        on_server = [one for one in prepared if one.change.kind not in HOST_KINDS]
        server, command = self._session.target, self.opened.access.restart_command
        receipts = receipts_for(self.apply_id, server, on_server, restart_command=command)
        return (
            (*receipts_for(self.apply_id, host_target(), on_host, server), *receipts) if on_host else receipts
        )

    def _change_server(self, receipts: Sequence[Receipt], *, needs_restart: bool) -> tuple[Receipt, ...]:
        writers = running_writers(self._session, self.opened.files)
        if receipts:
            receipts = make_changes(self.journal, writers, receipts, self.steps)
            reload_and_wait(self._session.connection, self._session.connect)
            self.steps("reloaded")
        if needs_restart:
            self._restart()
        return read_back(self.journal, writers, receipts, self.steps)

    def _roll_back(self, error: Exception | KeyboardInterrupt) -> None:
        """Restore the original values, through the files if the server does not start.

        The machine comes first, so that a restarted server does not use huge pages that are being released.
        Raises: StillChangedError if that fails too; ServerStartError if the server did not start with the new
        values and runs again with the original ones.
        """
        receipts = [one for one in self.journal.read().open if one.apply_id == self.apply_id][::-1]
        try:
            try:
                on_host = self._host.undo(one for one in receipts if one.is_on_host)
            finally:
                done, was_up = self._undo_server([one for one in receipts if not one.is_on_host])
        except (Exception, KeyboardInterrupt) as second:  # noqa: BLE001 — after any error something is still changed
            raise self._still_changed(error, _text(second)) from error
        if left := ", ".join(filter(None, (_left(done), _left(on_host)))):
            raise self._still_changed(error, f"not restored: {left}") from error
        if not was_up:
            what = "programs" if any(one.change.kind in PROGRAM_KINDS for one in receipts) else "settings"
            raise ServerStartError(
                f"the server did not start with the new {what}; it runs with the original {what} again",
                detail=_text(error),
            ) from error

    def _undo_server(self, receipts: Sequence[Receipt]) -> tuple[Undone, bool]:
        """Restore the server if anything was changed on it; return also whether it was up before."""
        if not receipts:
            return Undone((), (), (), 0), True
        was_up = self._is_up()
        if not was_up:
            self._start_with_former_files(receipts)
        return undo(self._undoing(), receipts), was_up

    def _restart(self) -> None:
        restarter = self._restarter
        if restarter is None:
            raise ServerError("a restart is needed and was not allowed")
        self.journal.restarting(self.apply_id)
        self.steps("before restart")
        restarter.restart()
        self.steps("restarted")
        self.journal.restarted(self.apply_id)
        self._session.reconnect()

    def _is_up(self) -> bool:
        """Whether this very server accepts connections; if so, the session is replaced by a new one."""
        try:
            self._session.reconnect()
        except ConnectionFailedError:
            return False
        return True

    def _start_with_former_files(self, receipts: Sequence[Receipt]) -> None:
        files, restarter = self.opened.files, self._restarter
        if files is None or restarter is None:
            raise ServerStartError("the server is down, and its files or a restart command are not available")
        writers = stopped_writers(files)
        restore_all(self.journal, writers, receipts, on_drift=OnDrift.SKIP, steps=self.steps).check()
        restarter.restart()
        self._session.reconnect()

    def _undoing(self) -> Undoing:
        writer = AlterSystemWriter(self._session, self.opened.files)
        return Undoing(self.journal, self._session, writer, self._restarter, steps=self.steps)

    def _still_changed(self, error: Exception | KeyboardInterrupt, second: str) -> StillChangedError:
        """Return the error for an apply that failed and could not be rolled back."""
        receipts = [one for one in self.journal.read().open if one.apply_id == self.apply_id][::-1]
        return still_changed(
            ServerError(_text(error), detail=f"rolling it back failed as well: {second}"),
            receipts,
            is_server_up=not self._session.connection.closed,
            revert_command=self.opened.access.revert_command,
        )


def _text(error: Exception | KeyboardInterrupt) -> str:
    known = as_pgdyno_error(error)
    return f"{known.message}: {known.detail}" if known.detail else known.message


def _left(done: Undone) -> str:
    return ", ".join([*(drift.key for drift in done.drifted), *done.pending_restart])
