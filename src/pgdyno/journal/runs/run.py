"""One apply from its first receipt to its end, with roll-back if it fails.

The caller holds the journal and the server's lock, and has made every check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.journal.ledger.log import Journal
from pgdyno.journal.runs.by_hand import still_changed
from pgdyno.journal.runs.changes import Prepared, make_changes, read_back, receipts_for, write_receipts
from pgdyno.journal.runs.host_run import HostRun, host_target
from pgdyno.journal.runs.server_writers import running_writers, stopped_writers
from pgdyno.journal.runs.undo import Undoing, Undone, restore_all, undo
from pgdyno.journal.session.access import Steps
from pgdyno.journal.session.reload import reload_and_wait
from pgdyno.journal.session.server_files import ServerFiles
from pgdyno.journal.session.session import Session
from pgdyno.journal.writers.alter_system import AlterSystemWriter
from pgdyno.model.errors import (
    ConnectionFailedError,
    PgdynoError,
    ServerError,
    ServerStartError,
    StillChangedError,
)
from pgdyno.model.plans.journal import OnDrift, Receipt
from pgdyno.model.plans.plan import HOST_KINDS, PROGRAM_KINDS, Effect
from pgdyno.model.ports import Restarter


@dataclass(frozen=True)
class ApplyRun:
    """Context of an apply.

    ``restarter`` None means that the server must not be restarted.
    """

    apply_id: str
    journal: Journal
    host: HostRun
    session: Session
    files: ServerFiles | None
    restarter: Restarter | None
    revert_command: str
    steps: Steps

    def carry_out(self, prepared: Sequence[Prepared]) -> tuple[Receipt, ...]:
        """Write all receipts, make all changes, bring them into force, and read them back.

        The machine comes first: a restarted server takes its huge pages from the pool.
        Raises: any PgdynoError; then ``roll_back`` is due.
        """
        self.steps("checked")
        receipts = self._receipts(prepared)
        write_receipts(self.journal, receipts, self.steps)
        on_host = self.host.carry_out([one for one in receipts if one.is_on_host])
        on_server = [one for one in receipts if not one.is_on_host]
        needs_restart = any(one.change.effect is Effect.RESTART for one in receipts)
        return (*on_host, *self._change_server(on_server, needs_restart=needs_restart))

    def _receipts(self, prepared: Sequence[Prepared]) -> tuple[Receipt, ...]:
        """Return the receipts for the machine and for the server."""
        on_host = [one for one in prepared if one.change.kind in HOST_KINDS]
        on_server = [one for one in prepared if one.change.kind not in HOST_KINDS]
        server = self.session.target
        receipts = receipts_for(self.apply_id, server, on_server)
        return (
            (*receipts_for(self.apply_id, host_target(), on_host, server), *receipts) if on_host else receipts
        )

    def _change_server(self, receipts: Sequence[Receipt], *, needs_restart: bool) -> tuple[Receipt, ...]:
        writers = running_writers(self.session, self.files)
        if receipts:
            receipts = make_changes(self.journal, writers, receipts, self.steps)
            reload_and_wait(self.session.connection, self.session.connect)
            self.steps("reloaded")
        if needs_restart:
            self._restart()
        return read_back(self.journal, writers, receipts, self.steps)

    def roll_back(self, error: PgdynoError | KeyboardInterrupt) -> None:
        """Restore the original values, through the files if the server does not start.

        The machine comes first: a restarted server must not find huge pages that are to be given back.
        Raises: StillChangedError if that fails too; ServerStartError saying so if the server did not start
        with the new values and runs again with the former ones.
        """
        receipts = [one for one in self.journal.read().open if one.apply_id == self.apply_id][::-1]
        try:
            try:
                on_host = self.host.undo(one for one in receipts if one.is_on_host)
            finally:
                done, was_up = self._undo_server([one for one in receipts if not one.is_on_host])
        except (PgdynoError, KeyboardInterrupt) as second:
            raise self._still_changed(error, _words(second)) from error
        if left := ", ".join(filter(None, (_left(done), _left(on_host)))):
            raise self._still_changed(error, f"not restored: {left}") from error
        if not was_up:
            what = "programs" if any(one.change.kind in PROGRAM_KINDS for one in receipts) else "settings"
            raise ServerStartError(
                f"the server did not come up with the new {what}; the former ones are back and it runs",
                detail=_words(error),
            ) from error

    def _undo_server(self, receipts: Sequence[Receipt]) -> tuple[Undone, bool]:
        """Restore the server if anything was changed on it; say also whether it has been up."""
        if not receipts:
            return Undone((), (), (), 0), True
        was_up = self._is_up()
        if not was_up:
            self._start_with_former_files(receipts)
        return undo(self._undoing(), receipts), was_up

    def _restart(self) -> None:
        if self.restarter is None:
            raise ServerError("a restart is needed and was not allowed")
        self.journal.restarting(self.apply_id)
        self.steps("before restart")
        self.restarter.restart()
        self.steps("restarted")
        self.journal.restarted(self.apply_id)
        self.session.reconnect()

    def _is_up(self) -> bool:
        """Whether the server, this one, takes connections; if so, the session is a new one."""
        try:
            self.session.reconnect()
        except ConnectionFailedError:
            return False
        return True

    def _start_with_former_files(self, receipts: Sequence[Receipt]) -> None:
        if self.files is None or self.restarter is None:
            raise ServerStartError(
                "the server is down, and its files or a way to start it are not accessible"
            )
        writers = stopped_writers(self.files)
        restore_all(self.journal, writers, receipts, on_drift=OnDrift.SKIP, steps=self.steps)
        self.restarter.restart()
        self.session.reconnect()

    def _undoing(self) -> Undoing:
        writer = AlterSystemWriter(self.session, self.files)
        return Undoing(self.journal, self.session, writer, self.restarter, steps=self.steps)

    def _still_changed(self, error: PgdynoError | KeyboardInterrupt, second: str) -> StillChangedError:
        """Return the error for an apply whose roll-back failed as well."""
        receipts = [one for one in self.journal.read().open if one.apply_id == self.apply_id][::-1]
        return still_changed(
            ServerError(_words(error), detail=f"undoing it failed as well: {second}"),
            receipts,
            is_server_up=not self.session.connection.closed,
            revert_command=self.revert_command,
        )


def _words(error: PgdynoError | KeyboardInterrupt) -> str:
    if not isinstance(error, PgdynoError):
        return "interrupted"
    return f"{error.message}: {error.detail}" if error.detail else error.message


def _left(done: Undone) -> str:
    return ", ".join([*(drift.key for drift in done.drifted), *done.pending_restart])
