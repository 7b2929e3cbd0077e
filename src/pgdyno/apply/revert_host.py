"""``pgdyno revert --host-only``: restore the machine without a server, which may be gone."""

from __future__ import annotations

import os
from dataclasses import replace

from pgdyno.apply.ledger.log import Contents, open_journal, read_journal
from pgdyno.apply.revert import RevertRequest, telling_what_is_left
from pgdyno.apply.runs.by_hand import outcome, restoring_statements
from pgdyno.apply.runs.host_run import HostRun, drift_on_host, receipts_of_host
from pgdyno.apply.runs.undo import Undone
from pgdyno.apply.session.access import ServerAccess
from pgdyno.model.plans.journal import Receipt, RevertResult


def concerns_host_alone(access: ServerAccess) -> bool:
    """Whether trials or ``setup`` alone have changed something, so that no server has to be asked.

    What a server's plan has changed on it is that server's. A damaged line may hide the receipt of one.
    """
    contents = read_journal(access.journal_directory)
    is_no_servers = all(one.is_of_machine_alone for one in contents.open) and not contents.damage
    return is_no_servers and bool(receipts_of_host(contents.receipts, None))


def revert_host(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Restore the machine's original values, newest change first. Nothing to revert is no error.

    Left out are changes on another machine, whose journal this one shares or is a copy of.
    Raises: LockHeldError; StillChangedError if it could not be finished.
    """
    access = _for_host(access)
    with open_journal(access.journal_directory) as journal:
        contents = journal.read()
        receipts = _chosen(contents, request)
        with telling_what_is_left(access, journal, receipts, lambda: True):
            done = HostRun(journal, access.host_writers, request.steps).undo(receipts, request.on_drift)
        return _result(access, done, contents)


def preview_revert_host(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Describe the effect of ``revert_host``. Changes nothing."""
    access = _for_host(access)
    contents = read_journal(access.journal_directory)
    receipts = _chosen(contents, request)
    drifts = (drift_on_host(access.host_writers[one.change.kind], one) for one in receipts)
    return _result(access, Undone(receipts, tuple(filter(None, drifts)), (), 0), contents, is_dry_run=True)


def _for_host(access: ServerAccess) -> ServerAccess:
    return replace(access, revert_command=f"{access.revert_command} --host-only")


def _chosen(contents: Contents, request: RevertRequest) -> tuple[Receipt, ...]:
    """Return the receipts to revert, newest first: of the last apply that changed the machine, or all."""
    receipts = receipts_of_host(contents.receipts, None)
    return tuple(one for one in receipts if request.is_all or one.apply_id == receipts[0].apply_id)


def _result(
    access: ServerAccess, done: Undone, contents: Contents, *, is_dry_run: bool = False
) -> RevertResult:
    on_servers = sum(1 for receipt in contents.open if not receipt.is_on_host)
    note = f"{on_servers} changes on servers stay applied: pgdyno status"
    return RevertResult(
        target=os.uname().nodename,
        outcomes=tuple(outcome(receipt) for receipt in done.receipts),
        statements=restoring_statements(done.receipts),
        drifted=done.drifted,
        damage=contents.damage,
        is_dry_run=is_dry_run,
        notes=(note,) if on_servers else (),
        revert_command=access.revert_command,
    )
