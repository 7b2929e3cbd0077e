"""``pgdyno revert --host-only``: restore the machine without a connection to a server, which may be gone."""

from __future__ import annotations

import os
from dataclasses import replace

from pgdyno.apply.ledger.log import Contents, open_journal, read_journal
from pgdyno.apply.revert import RevertRequest, reporting_leftovers
from pgdyno.apply.runs.changes import Undone
from pgdyno.apply.runs.host_run import HostRun, drift_on_host, receipts_of_host
from pgdyno.apply.runs.manual_commands import outcome, restoring_statements
from pgdyno.apply.session.access import ServerAccess
from pgdyno.model.plans.journal import Receipt, RevertResult


def affects_only_host(access: ServerAccess) -> bool:
    """Whether all open changes are by trials or ``setup``, so that no server has to be contacted.

    False for changes by a server's plan, and for a damaged journal, which may hide one.
    """
    contents = read_journal(access.journal_directory)
    is_no_servers = all(one.is_of_machine_alone for one in contents.open) and not contents.damage
    return is_no_servers and bool(receipts_of_host(contents.receipts, None))


def revert_host(access: ServerAccess, request: RevertRequest) -> RevertResult:
    """Restore the machine's original values, newest change first. Nothing to revert is not an error.

    Changes on other machines are skipped: the journal may be shared with one, or be a copy.
    Raises: LockHeldError; StillChangedError if the revert could not be finished.
    """
    access = _for_host(access)
    with open_journal(access.journal_directory) as journal:
        contents = journal.read()
        receipts = _chosen(contents, request)
        with reporting_leftovers(access, journal, receipts, lambda: True):
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
    """Return the receipts to revert, newest first: those of the last apply on this machine, or all."""
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
