"""Gives the machine what a variant asks of it, for the time of a trial, with receipts.

Whatever ends the trial, what was found is restored; after a kill ``pgdyno revert --host-only`` does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.journal.access import no_steps
from pgdyno.journal.by_hand import still_changed
from pgdyno.journal.changes import new_apply_id, prepare, receipts_for, write_receipts
from pgdyno.journal.host_run import HostRun, host_target
from pgdyno.journal.log import open_journal
from pgdyno.journal.unfinished import REVERT_HOST, check_unfinished
from pgdyno.model.errors import InterruptedByUserError, PgdynoError, StillChangedError
from pgdyno.model.journal import Receipt
from pgdyno.model.kernel_file import display_name
from pgdyno.model.plan import Change, Effect, kind_of
from pgdyno.model.ports import HostWriter


@dataclass(frozen=True)
class HostState:
    """The machine that is measured on, and the journal of its changes."""

    journal_directory: Path
    writers: Mapping[str, HostWriter]

    def check(self, files: Mapping[str, str]) -> None:
        """Refuse what cannot be set here, or not now. Changes nothing.

        Raises: SettingError, PrivilegeError; what ``holding`` raises before it changes anything.
        """
        if not files:
            return
        for path in files:
            self.writers[kind_of(path)].check(path)
        with open_journal(self.journal_directory) as journal:
            check_unfinished(journal.read(), None, REVERT_HOST)

    @contextmanager
    def holding(self, files: Mapping[str, str]) -> Iterator[None]:
        """Let the kernel's files hold these values meanwhile.

        Raises: before anything is changed LockHeldError, StorageError, or RefusedError if an earlier pgdyno
        was interrupted; SettingError if the kernel does not take a value, when what was found is back;
        StillChangedError if that could not be restored, or somebody else has changed it since.
        """
        if not files:
            yield
            return
        apply_id = new_apply_id()
        changes = [
            Change("variant", kind_of(path), path, None, value, Effect.IMMEDIATE)
            for path, value in files.items()
        ]
        with open_journal(self.journal_directory) as journal:
            check_unfinished(journal.read(), None, REVERT_HOST)
            run = HostRun(journal, self.writers)
            receipts = receipts_for(apply_id, host_target(), prepare(changes, self.writers))
            try:
                write_receipts(journal, receipts, no_steps)
                run.carry_out(receipts)
                yield
            finally:
                _give_back(run, apply_id)


def _give_back(run: HostRun, apply_id: str) -> None:
    """Restore what was found. Raises: StillChangedError."""
    try:
        drifted = run.undo(_open_receipts(run, apply_id)).drifted
    except (PgdynoError, KeyboardInterrupt) as error:
        failure = error if isinstance(error, PgdynoError) else InterruptedByUserError("interrupted")
        left = _open_receipts(run, apply_id)
        raise still_changed(failure, left, is_server_up=True, revert_command=REVERT_HOST) from error
    if drifted:
        raise StillChangedError(
            "somebody has changed the machine while it was measured",
            detail="; ".join(
                f"{display_name(one.key)} is {one.now}, asked for was {one.wanted}" for one in drifted
            ),
            hint=f"{REVERT_HOST} --drifted=overwrite restores what was found, --drifted=keep leaves it so",
        )


def _open_receipts(run: HostRun, apply_id: str) -> list[Receipt]:
    """Return the receipts of one trial, newest first."""
    return [one for one in reversed(run.journal.read().open) if one.apply_id == apply_id]
