"""Restore the original values of receipts, in reverse order.

Idempotent, and correct after a kill at any time.

A receipt is closed only when the original value is back *and* in force again; until then a revert starts over
from the present values. How far an apply got does not matter: only the server's present state does.

Stale ``pending_restart`` flags are cleared. PostgreSQL (15 to 18, ProcessConfigFileInternal) sets the flag
when a file gets a new value for a setting, and clears it when the file's value is the running one again. When
the entry is only removed from the file and the running value is the built-in default, the flag stays until
the server restarts. So the entry is set to the running value, loaded, removed, and loaded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.apply.configuration.foreign_edits import read_foreign_edits
from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.runs.changes import Undone
from pgdyno.apply.runs.server_writers import RunningWriters, running_writers
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.apply.session.restart import reload_and_wait
from pgdyno.apply.session.session import Session
from pgdyno.apply.session.settings import FileEntry, read_file_entries, read_gucs
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.auto_conf_file import AutoConfFileWriter
from pgdyno.apply.writers.program import are_former, running_programs
from pgdyno.base.errors import PgdynoError
from pgdyno.base.ports import ChangeWriter, Restarter
from pgdyno.model.plans.journal import Drift, OnDrift, Receipt, ReceiptState
from pgdyno.model.plans.plan import PROGRAM_KINDS
from pgdyno.postgres.alter_system import QUOTED_LISTS
from pgdyno.postgres.guc import Guc


@dataclass(frozen=True)
class Undoing:
    """Context of an undo. ``restarter`` None: the server must not be restarted."""

    journal: Journal
    session: Session
    writer: AlterSystemWriter
    restarter: Restarter | None = None
    on_drift: OnDrift = OnDrift.SKIP
    steps: Steps = no_steps

    @property
    def writers(self) -> RunningWriters:
        """Writers for this server, by kind of change."""
        return running_writers(self.session, self.writer.files)


@dataclass(frozen=True)
class Restoring:
    """Result of restoring: receipts with restored values, drift that was left alone, and errors."""

    restored: tuple[Receipt, ...]
    drifted: tuple[Drift, ...]
    errors: tuple[PgdynoError, ...]

    def check(self) -> None:
        """Raise the first error, if there was one."""
        for error in self.errors:
            raise error


def undo(context: Undoing, receipts: Sequence[Receipt]) -> Undone:
    """Restore over a connection in the given order, newest receipt first, reload, and read back.

    If a receipt cannot be restored, the others still are.
    Raises: ServerStartError if a restart for the original values fails; else the first error of restoring.
    """
    done = restore_all(
        context.journal, context.writers, receipts, on_drift=context.on_drift, steps=context.steps
    )
    restored, drifted = done.restored, done.drifted
    if not restored:
        done.check()
        return Undone(tuple(receipts), drifted, (), 0)
    reload_and_wait(context.session.connection, context.session.connect)
    context.steps("reloaded")
    clear_stale_marks(context.journal, context.session, context.writer, restored, context.steps)
    if context.writer.restore_file(receipt.found for receipt in restored[::-1]):
        context.steps("restored file")
        reload_and_wait(context.session.connection, context.session.connect)
    restarts = _restart_if_needed(context, restored)
    waiting = _waiting(context.session, restored)
    closed = {receipt.id: _close(context, receipt) for receipt in restored if receipt.key not in waiting}
    done.check()
    return Undone(
        receipts=tuple(closed.get(receipt.id, receipt) for receipt in receipts),
        drifted=drifted,
        pending_restart=tuple(sorted(waiting)),
        restarts=restarts,
    )


def restore_all(
    journal: Journal,
    writers: Mapping[str, ChangeWriter],
    receipts: Iterable[Receipt],
    *,
    on_drift: OnDrift,
    steps: Steps,
) -> Restoring:
    """Restore each receipt's value unless another user or program has changed it since.

    If one cannot be restored, older ones of the same key are skipped, and all others are restored.
    """
    restored, drifted, errors = list[Receipt](), list[Drift](), list[PgdynoError]()
    staying = set[str]()
    for receipt in receipts:
        if receipt.key in staying:
            continue
        writer = writers[receipt.change.kind]
        try:
            drift = find_drift(writer, receipt)
            if drift is not None and on_drift is OnDrift.KEEP:
                journal.advance(receipt, ReceiptState.RELEASED, note="left as changed by someone else")
                steps(f"released {receipt.key}")
            elif drift is not None and on_drift is OnDrift.SKIP:
                drifted.append(drift)
            else:
                writer.restore(receipt.key, receipt.found)
                steps(f"restored {receipt.key}")
                restored.append(receipt)
        except PgdynoError as error:
            errors.append(error)
            staying.add(receipt.key)
    return Restoring(tuple(restored), tuple(drifted), tuple(errors))


def find_drift(writer: ChangeWriter, receipt: Receipt) -> Drift | None:
    """Return another user's change of the key; None if its value is the original one or pgdyno's."""
    now = writer.read(receipt.key).value
    ours = (receipt.found.value, receipt.change.value, *receipt.interims)
    if any(writer.equals(receipt.key, now, value) for value in ours):
        return None
    return Drift(receipt.key, receipt.found.value, receipt.change.value, now)


def _restart_if_needed(context: Undoing, restored: Sequence[Receipt]) -> int:
    if context.restarter is None or not _waiting(context.session, restored):
        return 0
    context.journal.restarting(restored[0].apply_id)
    context.steps("before restart")
    context.restarter.restart()
    context.steps("restarted")
    context.journal.restarted(restored[0].apply_id)
    context.session.reconnect()
    return 1


def _waiting(session: Session, receipts: Iterable[Receipt]) -> set[str]:
    """Return the keys with the original value in the files but not yet in force."""
    receipts = tuple(receipts)
    with session.connect() as connection:  # the present session may have started before the reload
        waiting = set(read_foreign_edits(connection).for_restart)
        gucs = read_gucs(connection)
    waiting |= other_programs(session, receipts)
    return {one.key for one in receipts if one.key in waiting or _was_overridden(gucs.get(one.key), one)}


def other_programs(session: Session, receipts: Iterable[Receipt]) -> set[str]:
    """Return the keys of program selections whose original programs are not running.

    Receipts are newest first: for each key, the oldest one has the programs to restore.
    """
    oldest = {one.key: one for one in receipts if one.change.kind in PROGRAM_KINDS}
    running = running_programs(session.connect) if oldest else ""
    return {key for key, one in oldest.items() if not are_former(one.found, running)}


def _was_overridden(guc: Guc | None, receipt: Receipt) -> bool:
    """Whether the server still shows a value computed by itself in place of ours, such as for -1."""
    is_overridden = guc is not None and guc.needs_restart and guc.source == "override"
    return is_overridden and receipt.found.state.get("source") != "override"


def _close(context: Undoing, receipt: Receipt) -> Receipt:
    effective = context.writers[receipt.change.kind].verify(receipt.key)
    closed = context.journal.advance(receipt, ReceiptState.REVERTED, effective=effective)
    context.steps(f"reverted {receipt.key}")
    return closed


def clear_stale_marks(
    journal: Journal,
    session: Session,
    writer: AlterSystemWriter,
    receipts: Iterable[Receipt],
    steps: Steps,
) -> None:
    """Clear the pending_restart flags left by pgdyno's own changes.

    Temporary values are recorded in the journal before they are set.
    """
    with session.connect() as connection:
        entries = read_file_entries(connection).or_else(())
        gucs = read_gucs(connection)
    stale = [receipt for receipt in receipts if _is_stale(receipt, entries, gucs)]
    passing = [receipt for receipt in stale if _can_set(writer, receipt.key, gucs[receipt.key].setting)]
    if not passing:
        return
    for receipt in passing:
        value = gucs[receipt.key].setting
        journal.intend(receipt, value)
        steps(f"intended {receipt.key}")
        _set(writer, receipt.key, value)
        steps(f"passed {receipt.key}")
    reload_and_wait(session.connection, session.connect)
    steps("reloaded in passing")
    for receipt in passing:
        writer.restore(receipt.key, receipt.found)
        steps(f"restored {receipt.key} again")
    reload_and_wait(session.connection, session.connect)
    steps("reloaded again")


def _is_stale(receipt: Receipt, entries: Iterable[FileEntry], gucs: Mapping[str, Guc]) -> bool:
    """Whether pending_restart is set although the key is in no file and has its original value."""
    guc = gucs.get(receipt.key)
    return (
        guc is not None
        and guc.pending_restart
        and receipt.found.value is None
        and receipt.found.state.get("pending_restart") == "off"
        and guc.source != "configuration file"
        and guc.setting == receipt.found.state.get("setting")
        and not any(entry.name.lower() == receipt.key.lower() for entry in entries)
    )


def _can_set(writer: AlterSystemWriter, key: str, value: str) -> bool:
    return writer.files is not None or not _is_empty_list(key, value)


def _set(writer: AlterSystemWriter, key: str, value: str) -> None:
    """Set the running value. ALTER SYSTEM cannot express an empty list, but a file can."""
    if writer.files is not None and _is_empty_list(key, value):
        AutoConfFileWriter(writer.files).write(key, value)
    else:
        writer.write(key, value)


def _is_empty_list(key: str, value: str) -> bool:
    return key.lower() in QUOTED_LISTS and not value.strip()
