"""The use case ``setup --account``: create an account for pgdyno, with a receipt."""

from __future__ import annotations

from pgdyno.apply.ledger.log import Journal, open_journal, read_journal
from pgdyno.apply.runs.changes import (
    REVERT_HOST,
    check_unfinished,
    new_apply_id,
    prepare,
    receipts_for,
    write_receipts,
)
from pgdyno.apply.runs.host_run import HostRun, host_target
from pgdyno.apply.runs.manual_commands import still_changed
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.apply.writers.account import AccountWriter
from pgdyno.base.errors import as_pgdyno_error
from pgdyno.host.own_account import KEY, WANTED
from pgdyno.model.plans.plan import ACCOUNT, Change, Effect
from pgdyno.postgres.process.workspace import Workspace

_CHANGE = Change("setup", ACCOUNT, KEY, None, WANTED, Effect.IMMEDIATE)


def set_up_account(place: Workspace, steps: Steps = no_steps) -> bool:
    """Create the account; False if it already exists. Excludes measurements and builds.

    Raises: PrivilegeError, ServerError, OwnershipError, LockHeldError, RefusedError, StorageError before any
    change; ServerError with useradd's message, after undoing everything; StillChangedError if undoing failed.
    """
    directory, writer = place.root / "journal", AccountWriter(place.root)
    check_unfinished(read_journal(directory), None, REVERT_HOST)
    writer.check(KEY)
    if writer.value_if_any(KEY) == WANTED:
        return False
    with place.measuring(), open_journal(directory) as journal:
        _make(journal, writer, steps)
    return True


def _make(journal: Journal, writer: AccountWriter, steps: Steps) -> None:
    run = HostRun(journal, {ACCOUNT: writer}, steps)
    receipts = receipts_for(new_apply_id(), host_target(), prepare([_CHANGE], run.writers))
    try:
        write_receipts(journal, receipts, steps)
        run.carry_out(receipts)
    except (Exception, KeyboardInterrupt):
        _undo(run, receipts[0].id)
        raise


def _undo(run: HostRun, receipt_id: str) -> None:
    """Undo a failed change. Raises: StillChangedError."""
    left = [one for one in run.journal.read().open if one.id == receipt_id]
    try:
        run.undo(left)
    except (Exception, KeyboardInterrupt) as error:
        raise still_changed(
            as_pgdyno_error(error), left, is_server_up=True, revert_command=REVERT_HOST
        ) from error
