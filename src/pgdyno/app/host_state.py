"""Gives the machine what a variant asks of it, for the time of a trial, with receipts.

Whatever ends the trial, what was found is restored; after a kill ``pgdyno revert --host-only`` does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.journal.changes import new_apply_id, prepare
from pgdyno.journal.host_run import HostRun, kind_of
from pgdyno.journal.log import open_journal
from pgdyno.journal.writers.kernel_file import KernelFileWriter
from pgdyno.model.errors import PgdynoError, StillChangedError
from pgdyno.model.plan import Change, Effect

_REVERT = "pgdyno revert --host-only"


@dataclass(frozen=True)
class HostState:
    """The machine that is measured on, and the journal of its changes."""

    journal_directory: Path
    writers: Mapping[str, KernelFileWriter]

    def check(self, files: Mapping[str, str]) -> None:
        """Refuse what cannot be set here. Raises: SettingError, PrivilegeError."""
        for path in files:
            self.writers[kind_of(path)].check(path)

    @contextmanager
    def holding(self, files: Mapping[str, str]) -> Iterator[None]:
        """Let the kernel's files hold these values meanwhile.

        Raises: SettingError if the kernel does not take one; StillChangedError if what was found could not be
        restored, or somebody else has changed it since.
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
            run = HostRun(journal, self.writers)
            prepared = prepare(changes, self.writers)
            try:
                run.carry_out(apply_id, prepared)
                yield
            finally:
                mine = [one for one in reversed(journal.read().open) if one.apply_id == apply_id]
                try:
                    drifted = run.undo(mine).drifted
                except PgdynoError as error:
                    raise StillChangedError(error.message, detail=error.detail, hint=_REVERT) from error
                if drifted:
                    raise StillChangedError(
                        "somebody has changed the machine while it was measured",
                        detail="; ".join(
                            f"{one.key} is {one.now}, asked for was {one.wanted}" for one in drifted
                        ),
                        hint=f"{_REVERT} --drifted=overwrite restores what was found, --drifted=keep leaves it so",
                    )
