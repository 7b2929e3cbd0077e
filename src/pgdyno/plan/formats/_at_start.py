"""Files that set kernel values at boot: the texts of ``apply --persist``. Pure.

Each place has one file, with a block per value: comments, and one line that a program reads. Blocks of an
earlier apply remain until a new value for the same target replaces them.

Sources: sysctl.d(5), udev(7), tmpfiles.d(5); Linux, Documentation/admin-guide/mm/hugetlbpage.rst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pgdyno.host.kernel_file import display_name, sysctl_path
from pgdyno.model.plans.plan import Change
from pgdyno.plan.formats import sysctl, udev
from pgdyno.plan.formats._contract import comments, joined
from pgdyno.plan.formats._places import TMPFILES_PATH, Place, place_of, tmpfiles_line


@dataclass(frozen=True)
class StartFile:
    """pgdyno's file in one place. ``line`` renders a change; ``sign`` precedes the value in that line."""

    place: Place
    path: str
    line: Callable[[Change], str]
    sign: str

    def text(self, changes: Iterable[Change], present: str | None) -> str:
        """Return the file's text with these changes added; ``present`` None: the file does not exist yet."""
        blocks = {self._target(block): block for block in (present or "").rstrip("\n").split("\n\n")[1:]}
        for change in changes:
            block = f"{comments(_remarks(change))}\n{self.line(change)}"
            blocks[self._target(block)] = block
        return joined(comments(_HEAD), *blocks.values())

    def _target(self, block: str) -> str:
        """Return the target of a block: its last line up to ``sign``."""
        return block.rpartition("\n")[2].partition(self.sign)[0]


START_FILES = (
    StartFile(Place.SYSCTL, sysctl.PATH, sysctl.setting, " = "),
    StartFile(Place.UDEV, udev.PATH, udev.rule, '}="'),
    StartFile(Place.TMPFILES, TMPFILES_PATH, tmpfiles_line, " - - - - "),
)
"""In the order of writing."""

_HEAD = (
    "Written by pgdyno apply --persist: sets these values whenever this machine starts.",
    "To remove it: pgdyno revert, which undoes everything that was applied together with it.",
    "pgdyno status shows when it was applied, and by whom.",
)


def changes_in(place: Place, changes: Sequence[Change], huge_page_kb: int | None) -> tuple[Change, ...]:
    """Return the changes that belong in a place, in the form written there.

    ``huge_page_kb`` is the default size of huge pages. The pool of this size is set by sysctl, which runs
    earlier during boot, when memory is less fragmented.
    """
    moved = (_as_sysctl(change, huge_page_kb) for change in changes)
    return tuple(change for change in moved if place_of(change.key) is place)


def _as_sysctl(change: Change, huge_page_kb: int | None) -> Change:
    if change.key != f"/sys/kernel/mm/hugepages/hugepages-{huge_page_kb}kB/nr_hugepages":
        return change
    return Change(
        change.lever, change.kind, sysctl_path("vm.nr_hugepages"), change.current, change.value, change.effect
    )


def _remarks(change: Change) -> tuple[str, ...]:
    found = "" if change.current is None else f"{change.current} → "
    return (f"{display_name(change.key)}: {found}{change.value}, by lever {change.lever}",)
