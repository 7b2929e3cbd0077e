"""Changes on the machine itself, and their way back: receipts first, like a server's.

The caller holds the journal, and has made every check. A machine needs no reload and no restart, so that
this is all there is to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.journal.access import Steps, no_steps
from pgdyno.journal.changes import Prepared, make_changes, read_back, write_receipts
from pgdyno.journal.log import Journal
from pgdyno.journal.target import this_machine
from pgdyno.journal.undo import Undone, restore_all
from pgdyno.journal.writers.huge_page_pool import HugePagePoolWriter
from pgdyno.journal.writers.kernel_file import KernelFileWriter
from pgdyno.journal.writers.msr import MsrWriter
from pgdyno.model.errors import ServerError
from pgdyno.model.journal import OnDrift, Receipt, ReceiptState, Target
from pgdyno.model.msr import register_of
from pgdyno.model.plan import HUGE_PAGES, KERNEL, MSR

_THIS_HOST = Path("/")
_GONE = "gone by itself: the machine was restarted since"


def host_target() -> Target:
    """Return what receipts for changes on this machine name as their target.

    Raises: ServerError if the machine has no id to recognise it by.
    """
    machine = this_machine()
    if machine is None:
        raise ServerError(
            "this machine has no id, so that a receipt could not say where its change was made",
            detail="/etc/machine-id is missing or empty",
            hint="systemd-machine-id-setup makes one",
        )
    return Target("host", machine, None, machine, os.uname().nodename)


def host_writers(root: Path = _THIS_HOST) -> dict[str, KernelFileWriter]:
    """Return the writers of changes on the machine below ``root``, by kind."""
    writers = (KernelFileWriter(root), HugePagePoolWriter(root), MsrWriter(root))
    return {writer.kind: writer for writer in writers}


def kind_of(path: str) -> str:
    """Return the kind of change that writes a file of the kernel, or a register."""
    if register_of(path) is not None:
        return MSR
    return HUGE_PAGES if path.startswith("/sys/kernel/mm/hugepages/") else KERNEL


@dataclass(frozen=True)
class HostRun:
    """What changing and restoring a machine works with."""

    journal: Journal
    writers: Mapping[str, KernelFileWriter]
    steps: Steps = no_steps

    def carry_out(self, apply_id: str, prepared: Sequence[Prepared]) -> tuple[Receipt, ...]:
        """Write all receipts, make all changes, and read them back.

        Raises: any PgdynoError; then ``undo`` is due.
        """
        if not prepared:
            return ()
        receipts = write_receipts(self.journal, apply_id, host_target(), prepared, self.steps)
        receipts = make_changes(self.journal, self.writers, receipts, self.steps)
        return read_back(self.journal, self.writers, receipts, self.steps)

    def undo(self, receipts: Iterable[Receipt], on_drift: OnDrift = OnDrift.SKIP) -> Undone:
        """Restore what was found, newest receipt first as they are given, and read it back.

        Raises: ServerError if the kernel shows something else afterwards.
        """
        receipts = tuple(receipts)
        gone = [one for one in receipts if self._writer(one).is_gone(one.found)]
        closed = {one.id: self._close(one, _GONE) for one in gone}
        left = [one for one in receipts if one.id not in closed]
        restored, drifted = restore_all(self.journal, self.writers, left, on_drift=on_drift, steps=self.steps)
        closed |= {one.id: self._close(one) for one in restored}
        return Undone(tuple(closed.get(one.id, one) for one in receipts), drifted, (), 0)

    def _close(self, receipt: Receipt, note: str | None = None) -> Receipt:
        writer = self._writer(receipt)
        effective = writer.verify(receipt.key)
        if note is None and not writer.equals(receipt.key, effective, receipt.found.value):
            raise ServerError(
                f"{receipt.key} could not be restored",
                detail=f"found was {receipt.found.value}, the kernel shows {effective}",
            )
        closed = self.journal.advance(receipt, ReceiptState.REVERTED, effective=effective, note=note)
        self.steps(f"reverted {receipt.key}")
        return closed

    def _writer(self, receipt: Receipt) -> KernelFileWriter:
        return self.writers[receipt.change.kind]


def receipts_of_host(receipts: Iterable[Receipt], target: Target | None) -> tuple[Receipt, ...]:
    """Return the open receipts of changes on the machine, newest first.

    Left out are those of applies that have changed another server than ``target`` as well: they are undone
    together with that. ``target`` None takes all.
    """
    known = tuple(receipts)
    elsewhere = {
        one.apply_id
        for one in known
        if not one.is_on_host and target is not None and not one.target.is_same_as(target)
    }
    return tuple(
        one for one in reversed(known) if one.is_open and one.is_on_host and one.apply_id not in elsewhere
    )
