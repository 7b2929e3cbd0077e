"""Set the host as variants request it, for the duration of a trial, with receipts.

The original values are restored however the trial ends; after a kill, by ``pgdyno revert --host-only``.

Arms that take turns share the machine. Values that are equal for all arms are written once. A pool of huge
pages holds the sum of their requests. All other values are written at every turn: ``plan/engine/sharing.py``
decides for which files that makes sense.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.runs.changes import (
    REVERT_HOST,
    check_unfinished,
    new_apply_id,
    prepare,
    receipts_for,
    write_receipts,
)
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers, receipts_of_host
from pgdyno.apply.runs.manual_commands import still_changed
from pgdyno.apply.session.access import no_steps
from pgdyno.base.errors import SettingError, StillChangedError, as_pgdyno_error
from pgdyno.base.ports import HostWriter
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import display_name
from pgdyno.host.machine.owners import check_owners
from pgdyno.model.plans.journal import Receipt
from pgdyno.model.plans.plan import HUGE_PAGES, Change, Effect, kind_of
from pgdyno.postgres.process.local_machine import workspace

BeginTurn = Callable[[int], None]
"""Sets the values of an arm, by its index."""


@dataclass(frozen=True)
class HostState:
    """The measured machine, and the journal of its changes.

    ``always``: values of kernel files to hold in addition to those that arms request.
    """

    journal_directory: Path
    writers: Mapping[str, HostWriter]
    tree: Tree = field(default_factory=Tree)
    always: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def check(self, files: Mapping[str, str]) -> None:
        """Refuse values that cannot be set here or now. Changes nothing.

        Raises: SettingError, PrivilegeError; OwnershipError if another program manages one of them; the
        errors of ``holding`` before any change.
        """
        if not files:
            return
        for path in files:
            self.writers[kind_of(path)].check(path)
        check_owners(self.tree, list(files))
        with open_journal(self.journal_directory) as journal:
            check_unfinished(journal.read(), None, REVERT_HOST)

    def restore_left(self, paths: Collection[str]) -> None:
        """Restore these files after a killed trial, unless they were changed since.

        Raises: LockHeldError if a trial is running; StorageError; ServerError if a value cannot be restored.
        """
        if not self.journal_directory.exists():
            return
        with open_journal(self.journal_directory) as journal:
            left = receipts_of_host(journal.read().open, None)
            of_trials = [one for one in left if one.is_of_trial and one.key in paths]
            HostRun(journal, self.writers).undo(of_trials)

    @contextmanager
    def holding(self, *arms: Mapping[str, str]) -> Iterator[BeginTurn | None]:
        """Hold these values in kernel files: the first arm's, until another arm's turn begins.

        Yields the function that begins a turn; None if no value differs between arms.
        Raises: before any change LockHeldError, StorageError, or RefusedError if an earlier pgdyno was
        interrupted; SettingError if the kernel rejects a value, after restoring the original ones;
        StillChangedError if an original value could not be restored, or someone else changed it.
        """
        arms = tuple({**self.always, **arm} for arm in arms)
        if not any(arms):
            yield None
            return
        apply_id = new_apply_id()
        with open_journal(self.journal_directory) as journal:
            check_unfinished(journal.read(), None, REVERT_HOST)
            run = HostRun(journal, self.writers)
            shared = self._shared(arms)
            prepared = prepare(_changes(shared.at_first), self.writers)
            receipts = receipts_for(apply_id, host_target(), prepared)
            try:
                write_receipts(journal, receipts, no_steps)
                for receipt in receipts:
                    for value in shared.later(receipt.key):
                        journal.intend(receipt, value)
                run.carry_out(receipts)
                turns = Turns(self.writers, shared.by_arm, shared.at_first)
                try:
                    turns.try_all()
                except (Exception, KeyboardInterrupt):
                    run.claim(_open_receipts(run, apply_id))
                    raise
                yield turns.begin if any(shared.by_arm) else None
            finally:
                _give_back(run, apply_id)

    def _shared(self, arms: Sequence[Mapping[str, str]]) -> Shared:
        paths = dict.fromkeys(path for arm in arms for path in arm)
        found = {path: self.writers[kind_of(path)].read(path).value or "" for path in paths}
        return share([{**found, **arm} for arm in arms], found)


def this_host() -> HostState:
    """Return this machine's state, with the workspace's journal."""
    return HostState(workspace().root / "journal", host_writers(home=workspace().root))


def _changes(files: Mapping[str, str]) -> list[Change]:
    return [
        Change("variant", kind_of(path), path, None, value, Effect.IMMEDIATE) for path, value in files.items()
    ]


@dataclass(frozen=True)
class Shared:
    """Initial contents of files, and those that differ between arms."""

    at_first: Mapping[str, str]
    by_arm: Sequence[Mapping[str, str]]

    def later(self, path: str) -> tuple[str, ...]:
        """Return the values that a file gets after its first one."""
        first = self.at_first[path]
        return tuple(dict.fromkeys(arm[path] for arm in self.by_arm if arm.get(path, first) != first))


def share(arms: Sequence[Mapping[str, str]], found: Mapping[str, str]) -> Shared:
    """Return the host's state for interleaved arms, which must all name the same files.

    An arm's share of a pool is the number of pages beyond those found, which belong to someone else.
    Raises: SettingError for a pool size that is not a number of pages.
    """
    values = {path: [arm[path] for arm in arms] for path in found}
    pools = {
        path: str(_pages(path, wishes, found[path])) for path, wishes in values.items() if _is_pool(path)
    }
    turned = [path for path in values if path not in pools and len(set(values[path])) > 1]
    return Shared({**arms[0], **pools}, [{path: arm[path] for path in turned} for arm in arms])


def _is_pool(path: str) -> bool:
    return kind_of(path) == HUGE_PAGES


def _pages(path: str, wishes: Sequence[str], found: str) -> int:
    """Return the pages of a pool.

    One arm: its request. Several: the original size plus the sum of their requests beyond it.
    """
    for wish in wishes:
        if not wish.isdecimal():
            raise SettingError(
                f'"{wish}" is not a number of huge pages', detail=f"requested for {display_name(path)}"
            )
    sizes, present = [int(wish) for wish in wishes], int(found)
    return sizes[0] if len(sizes) == 1 else present + sum(max(0, size - present) for size in sizes)


@dataclass
class Turns:
    """Writes the values of the current arm."""

    writers: Mapping[str, HostWriter]
    by_arm: Sequence[Mapping[str, str]]
    now: Mapping[str, str]

    def begin(self, arm: int) -> None:
        """Write the arm's differing values. Raises: SettingError, PrivilegeError."""
        for path, value in self.by_arm[arm].items():
            if self.now[path] != value:
                self.writers[kind_of(path)].write(path, value)
                self.now = {**self.now, path: value}

    def try_all(self) -> None:
        """Set every arm's values once. Raises: SettingError if the kernel changes a value."""
        for arm, values in enumerate(self.by_arm):
            self.begin(arm)
            for path, value in values.items():
                writer = self.writers[kind_of(path)]
                effective = writer.verify(path)
                if effective is None or not writer.meets(path, value, effective):
                    raise SettingError(
                        f'the kernel does not keep "{value}" for {display_name(path)}',
                        detail=f"it shows {effective}",
                    )


def _give_back(run: HostRun, apply_id: str) -> None:
    """Restore the original values. Raises: StillChangedError."""
    try:
        drifted = run.undo(_open_receipts(run, apply_id)).drifted
    except (Exception, KeyboardInterrupt) as error:
        left = _open_receipts(run, apply_id)
        raise still_changed(
            as_pgdyno_error(error), left, is_server_up=True, revert_command=REVERT_HOST
        ) from error
    if drifted:
        raise StillChangedError(
            "someone else changed the machine while it was measured",
            detail="; ".join(
                f"{display_name(one.key)} is {one.now}, requested was {one.wanted}" for one in drifted
            ),
            hint=f"{REVERT_HOST} --drifted=overwrite restores the original values, "
            "--drifted=keep keeps the present ones",
        )


def _open_receipts(run: HostRun, apply_id: str) -> list[Receipt]:
    """Return the receipts of one trial, newest first."""
    return [one for one in reversed(run.journal.read().open) if one.apply_id == apply_id]
