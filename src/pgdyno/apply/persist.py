"""``apply --persist``: make host changes survive a reboot.

Each value goes into a file by its kind (sysctl.d, a udev rule, tmpfiles.d). Each file is a change with a
receipt like any other, so one revert undoes everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.apply.ledger.log import Contents
from pgdyno.apply.runs.host_run import receipts_of_host
from pgdyno.base.errors import OwnershipError
from pgdyno.base.ports import HostWriter
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import COUPLED, display_name
from pgdyno.host.machine.boot_sources import (
    set_later,
    why_no_sysctls,
    why_no_tmpfiles,
    why_no_udev,
    why_not_this_etc,
)
from pgdyno.host.machine.memory import inspect_memory
from pgdyno.host.machine.owners import check_owners
from pgdyno.model.plans.journal import Receipt, Target
from pgdyno.model.plans.plan import HOST_KINDS, HUGE_PAGES, PERSISTED_FILE, Change, Effect
from pgdyno.plan.formats._at_start import START_FILES, StartFile, changes_in
from pgdyno.plan.formats._places import Place, device_file, place_of

_WHY_NOT = {Place.SYSCTL: why_no_sysctls, Place.UDEV: why_no_udev, Place.TMPFILES: why_no_tmpfiles}
_DEBUGFS = "/sys/kernel/debug/"
_NOTHING = "nothing to persist: neither this plan nor an earlier apply in force changes the machine"


@dataclass(frozen=True)
class Persisted:
    """Files to write, as changes, with notes for the user."""

    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Persisting:
    """The context of persisting: a machine, its journal, and the server that the plan is for."""

    tree: Tree
    writers: Mapping[str, HostWriter]
    contents: Contents
    server: Target

    def files(self, planned: Iterable[Change]) -> Persisted:
        """Return the files that set the planned values, and those of earlier applies still in force.

        Raises: OwnershipError if a file with that name is not ours or was edited by someone else, or if
        another program manages one of the values.
        """
        values = {**self._in_force(), **{one.key: one for one in planned if one.kind in HOST_KINDS}}
        if not values:
            return Persisted(notes=(_NOTHING,))
        changes = tuple(values.values())
        check_owners(self.tree, [change.key for change in changes])
        notes = [*_without_place(changes)]
        written: list[Change] = []
        for file in START_FILES:
            mine = changes_in(file.place, changes, self._huge_page_kb())
            why = why_not_this_etc(self.tree) or _WHY_NOT[file.place](self.tree)
            if mine and why is not None:
                notes.append(f"not persisted: {_names(mine)}: {why}")
            elif mine:
                written += self._file(file, mine)
                notes += self._notes(file, mine)
        return Persisted(tuple(written), tuple(notes))

    def _in_force(self) -> dict[str, Change]:
        """Return the changes by earlier applies for this server that are still in force, by path."""
        newest = {one.key: one for one in reversed(receipts_of_host(self.contents.receipts, self.server))}
        return {key: one.change for key, one in newest.items() if self._is_in_force(one)}

    def _is_in_force(self, receipt: Receipt) -> bool:
        if receipt.change.kind == PERSISTED_FILE or receipt.is_of_trial:
            return False
        writer = self.writers[receipt.change.kind]
        is_ours = writer.equals(receipt.key, writer.value_if_any(receipt.key), receipt.change.value)
        return is_ours and not writer.is_gone(receipt.found)

    def _file(self, file: StartFile, changes: Sequence[Change]) -> Iterator[Change]:
        """Yield the change of a file, unless it already has these values."""
        present = self.writers[PERSISTED_FILE].value_if_any(file.path)
        if present is not None:
            self._check_ours(file.path, present)
        text = file.text(changes, present)
        if text != present:
            yield Change("persist", PERSISTED_FILE, file.path, None, text, Effect.IMMEDIATE)

    def _check_ours(self, path: str, present: str) -> None:
        """Refuse to overwrite files not written by pgdyno, and files that were edited since."""
        receipts = receipts_of_host(self.contents.receipts, None)
        ours = next((one.change.value for one in receipts if one.key == path), None)
        if ours is None:
            raise OwnershipError(
                f"{path} already exists, and pgdyno did not write it",
                detail="the journal has no receipt for it",
                hint="move it away, or omit --persist",
            )
        if ours != present:
            raise OwnershipError(
                f"someone else has edited {path} since pgdyno wrote it",
                hint="remove it with pgdyno revert --drifted=overwrite, or omit --persist",
            )

    def _notes(self, file: StartFile, changes: Sequence[Change]) -> Iterator[str]:
        """Yield reasons why a value may not be in force after the next boot."""
        if file.place is Place.SYSCTL:
            yield from self._winners(file.path, [change.key for change in changes])
        if any(change.kind == HUGE_PAGES for change in changes):
            yield (
                "huge pages are reserved at boot, before memory is fragmented: revert them before reducing "
                "the machine's memory"
            )
        if debugfs := [change for change in changes if change.key.startswith(_DEBUGFS)]:
            yield f"{_names(debugfs)}: set at boot only if debugfs is mounted before systemd-tmpfiles runs"
        if disks := sorted(set(filter(None, map(_disk, changes)))):
            yield f"{file.path} identifies disks by name ({', '.join(disks)}): make sure the names are stable"

    def _winners(self, path: str, keys: Collection[str]) -> Iterator[str]:
        """Yield files that set the same values after ours. Of two coupled sysctls the later one counts."""
        watched = [*keys, *(COUPLED[key] for key in keys if key in COUPLED)]
        for other, key in set_later(self.tree, path, watched):
            yield f"{other} sets {display_name(key)} after {path}, and overrides it at boot"

    def _huge_page_kb(self) -> int | None:
        default_bytes = inspect_memory(self.tree).huge_page_bytes.or_none()
        return None if default_bytes is None else default_bytes >> 10


def _without_place(changes: Iterable[Change]) -> Iterator[str]:
    """Yield a note for each change that no file can set at boot."""
    for change in changes:
        place = place_of(change.key)
        if place not in _WHY_NOT:
            yield f"not persisted: {display_name(change.key)}: it belongs in {place.value}"


def _disk(change: Change) -> str | None:
    file = device_file(change.key)
    return file.device if file is not None and file.subsystem == "block" else None


def _names(changes: Iterable[Change]) -> str:
    return ", ".join(display_name(change.key) for change in changes)
