"""Changes on the machine itself, and their restoration.

Receipts are written first, as for a server. The caller holds the journal, and has done all checks. A machine
needs neither reload nor restart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.runs.changes import Undone, make_changes, read_back
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.apply.session.target import is_this_machine, this_machine
from pgdyno.apply.writers.account import AccountWriter
from pgdyno.apply.writers.cache_group import CacheGroupWriter
from pgdyno.apply.writers.cache_mount import CacheMountWriter
from pgdyno.apply.writers.huge_page_pool import HugePagePoolWriter
from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.apply.writers.msr import MsrWriter
from pgdyno.apply.writers.persisted_file import PersistedFileWriter
from pgdyno.base.errors import AlreadyThereError, PgdynoError, ServerError, StorageError
from pgdyno.base.ports import HostWriter
from pgdyno.host.files.resctrl import Resctrl
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.journal import Drift, OnDrift, Receipt, ReceiptState, Target, shown
from pgdyno.model.plans.plan import CACHE_KINDS

_THIS_HOST = Path("/")
_GONE = "discarded by a restart of the machine"
_KEPT = "the machine was restarted since, has this value, and keeps it until the next restart"
_LEFT = "left as changed by someone else"
_PASSES = 2  # the kernel may reject a value until another one is restored
_REVERTED = ReceiptState.REVERTED
_TRIED = (ReceiptState.APPLIED, ReceiptState.VERIFIED, ReceiptState.FAILED)


def host_target() -> Target:
    """Return the target of receipts for changes on this machine.

    Raises: ServerError if the machine has no id to recognise it by.
    """
    machine = this_machine()
    if machine is None:
        raise ServerError(
            "this machine has no id for receipts to identify it",
            detail="/etc/machine-id is missing or empty",
            hint="create one with systemd-machine-id-setup",
        )
    return Target("host", machine, None, machine, os.uname().nodename)


def host_writers(root: Path = _THIS_HOST, home: Path | None = None) -> dict[str, HostWriter]:
    """Return the writers of changes on the machine below ``root``, by kind; ``home`` is the workspace."""
    writers: tuple[HostWriter, ...] = (
        KernelFileWriter(root),
        HugePagePoolWriter(root),
        MsrWriter(root),
        CacheMountWriter(root, resctrl=Resctrl(root)),
        CacheGroupWriter(root, resctrl=Resctrl(root)),
        PersistedFileWriter(root),
        AccountWriter(home),
    )
    return {writer.kind: writer for writer in writers}


@dataclass(frozen=True)
class HostRun:
    """Context for changing and restoring a machine."""

    journal: Journal
    writers: Mapping[str, HostWriter]
    steps: Steps = no_steps

    def carry_out(self, receipts: Sequence[Receipt]) -> tuple[Receipt, ...]:
        """Rehearse restoring, make the changes of these receipts, and read them back.

        Raises: any PgdynoError; the caller must then call ``undo``.
        """
        for receipt in receipts:
            try:
                self._writer(receipt).rehearse(receipt.key, receipt.found)
            except AlreadyThereError as error:
                self._close(receipt, ReceiptState.RELEASED, None, error.message)
                raise
            self.steps(f"rehearsed {receipt.key}")
        try:
            applied = make_changes(self.journal, self.writers, receipts, self.steps)
            return read_back(self.journal, self.writers, applied, self.steps)
        except (Exception, KeyboardInterrupt):
            self.claim(receipts)
            raise

    def undo(self, receipts: Iterable[Receipt], on_drift: OnDrift = OnDrift.SKIP) -> Undone:
        """Restore the original values in the given order, newest receipt first, and read each one back.

        Raises: the first error, after trying to restore all the others.
        """
        known = {receipt.id: receipt for receipt in receipts}
        drifted: list[Drift] = []
        errors: list[PgdynoError] = []
        for _ in range(_PASSES):
            drifted, errors = self._undo_all(known, on_drift)
        if errors:
            raise errors[0]
        return Undone(tuple(known.values()), tuple(drifted), (), 0)

    def claim(self, receipts: Iterable[Receipt]) -> None:
        """Record the present values after a failure as pgdyno's own.

        A partly reserved pool, or a value adjusted by the kernel, is pgdyno's. A division of caches that
        pgdyno did not get to make is someone else's.
        """
        tried = {one.id for one in self.journal.read().receipts if one.state in _TRIED}
        for receipt in receipts:
            if receipt.change.kind in CACHE_KINDS and receipt.id not in tried:
                continue
            now = self._writer(receipt).value_if_any(receipt.key)
            if now is not None and drift_on_host(self._writer(receipt), receipt) is not None:
                self.journal.intend(receipt, now)

    def _undo_all(
        self, known: dict[str, Receipt], on_drift: OnDrift
    ) -> tuple[list[Drift], list[PgdynoError]]:
        """Restore as much as possible, and store the updated receipts in ``known``."""
        drifted: list[Drift] = []
        errors: list[PgdynoError] = []
        staying: set[str] = set()  # files with a change that stays, and so do their older changes
        for receipt in list(known.values()):
            if not receipt.is_open or receipt.key in staying:
                continue
            drift = None
            try:
                drift = self._undo_one(known, receipt, on_drift)
            except PgdynoError as error:
                errors.append(error)
                staying.add(receipt.key)
            if drift is not None:
                drifted.append(drift)
                staying.add(receipt.key)
        return drifted, errors

    def _undo_one(self, known: dict[str, Receipt], receipt: Receipt, on_drift: OnDrift) -> Drift | None:
        """Restore a receipt's original value and close it, or return its drift."""
        writer, key, found = self._writer(receipt), receipt.key, receipt.found
        if writer.is_gone(found):
            now = writer.value_if_any(key)
            is_set_at_start = writer.equals(key, now, receipt.change.value)
            note = _KEPT if is_set_at_start else _GONE
            known[receipt.id] = self._close(receipt, _REVERTED, now, note)
            return None
        drift = drift_on_host(writer, receipt)
        if drift is not None and on_drift is OnDrift.SKIP:
            return replace(drift, later=self._changed_later_for(receipt))
        if drift is not None and on_drift is OnDrift.KEEP:
            known[receipt.id] = self._close(receipt, ReceiptState.RELEASED, drift.now, _LEFT)
            return None
        # Even if the value is already in place: other values that the kernel reset with it may not be.
        receipt = known[receipt.id] = self._record_restoring(receipt)
        writer.restore(key, found)
        self.steps(f"restored {key}")
        known[receipt.id] = self._close(receipt, _REVERTED, self._read_back(receipt))
        return None

    def _changed_later_for(self, receipt: Receipt) -> str | None:
        """Return the address of another server whose plan later changed the same key and is not undone."""
        of_key = [one for one in self.journal.read().open if one.key == receipt.key and one.is_on_host]
        ids = [one.id for one in of_key]
        later = of_key[ids.index(receipt.id) + 1 :] if receipt.id in ids else []
        return next((one.server.address for one in later if one.server not in (None, receipt.server)), None)

    def _record_restoring(self, receipt: Receipt) -> Receipt:
        """Record that the value is about to be restored; on a full disk, restore it without a record."""
        with suppress(StorageError):
            receipt = self.journal.restoring(receipt)
        self.steps(f"restoring {receipt.key}")
        return receipt

    def _read_back(self, receipt: Receipt) -> str | None:
        """Return the current value. Raises: ServerError if it is not the original one."""
        writer, found = self._writer(receipt), shown(receipt.change.kind, receipt.found.value)
        effective = writer.verify(receipt.key)
        if not writer.equals(receipt.key, effective, found):
            raise ServerError(
                f"{display_name(receipt.key)} could not be restored",
                detail=f"the original value was {found}, the kernel shows {effective}",
            )
        return effective

    def _close(
        self, receipt: Receipt, state: ReceiptState, effective: str | None, note: str | None = None
    ) -> Receipt:
        closed = self.journal.advance(receipt, state, effective=effective, note=note)
        self.steps(f"{state} {receipt.key}")
        return closed

    def _writer(self, receipt: Receipt) -> HostWriter:
        return self.writers[receipt.change.kind]


def drift_on_host(writer: HostWriter, receipt: Receipt) -> Drift | None:
    """Return the change that another user or program made to a file.

    None if its value is the original one or pgdyno's, or the machine was restarted.

    Until pgdyno's value was read back, a value on the way to it also counts as pgdyno's.
    """
    if writer.is_gone(receipt.found):
        return None
    key, found, wanted = receipt.key, receipt.found.value, receipt.change.value
    now = writer.value_if_any(key)
    if any(writer.equals(key, now, one) for one in (found, wanted, *receipt.interims)):
        return None
    if now is not None and not receipt.is_settled and writer.is_on_the_way(now, found or "", wanted):
        return None
    kind = receipt.change.kind
    return Drift(key, shown(kind, found), shown(kind, wanted), None if now is None else shown(kind, now))


def receipts_of_host(receipts: Iterable[Receipt], server: Target | None) -> tuple[Receipt, ...]:
    """Return the open receipts of changes on this machine, newest first.

    ``server`` excludes changes by other servers' plans, which are undone with those servers, and the account
    of ``setup``, which belongs to no server.
    """
    return tuple(
        one
        for one in reversed(tuple(receipts))
        if one.is_open
        and is_this_machine(one.target)
        and (server is None or one.is_of_trial or (one.server is not None and one.server.is_same_as(server)))
    )
