"""Manual commands that divide the processor's caches, and that undo it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from pgdyno.host.cache_allocation import GROUP, OF_GROUP, RESCTRL, WITH_CDP, Division, division_of


def dividing_statement(key: str, value: str) -> str:
    """Return the line for root's shell that makes a change of the caches' division."""
    if key == RESCTRL:
        options = "-o cdp " if value == WITH_CDP else ""
        return f"mount -t resctrl {options}resctrl {RESCTRL}"
    division = division_of(value)
    if division is None or key != OF_GROUP:
        return _writing(key, () if division is None else division.lines)
    return "; ".join((f"mkdir {GROUP}", _writing(key, division.lines), *_moving(division)))


def restoring_division(key: str, found: str | None) -> str:
    """Return the line that restores the division that was found; None: there was no group, or no mount."""
    if key == RESCTRL:
        return f"umount {RESCTRL}"
    if key == OF_GROUP:
        return f"rmdir {GROUP}" if found is None else f": {GROUP} was there before"
    division = division_of(found or "")
    return _writing(key, () if division is None else division.lines)


def _writing(key: str, lines: Iterable[str]) -> str:
    return f"printf '%s\\n' {shlex.join(lines)} > {key}"


def _moving(division: Division) -> tuple[str, ...]:
    """Return the command that moves a postmaster and its processes."""
    if division.data_directory is None:
        return ()
    file = shlex.quote(f"{division.data_directory}/postmaster.pid")
    of_server = f"postmaster=$(head -n 1 {file})"
    each = f"for task in $postmaster $(pgrep -P $postmaster); do echo $task > {GROUP}/tasks; done"
    return of_server, each
