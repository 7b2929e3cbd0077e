"""Parse unified diffs and apply them to a text. Pure.

Stricter than patch(1): only existing files are changed, every context line must match, and a moved hunk must
match at exactly one place after the previous hunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OLD, _NEW = "--- a/", "+++ b/"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_PATH = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*", re.ASCII)  # relative; no component begins with a dot


class DiffError(ValueError):
    """A text that is not a supported unified diff."""


class HunkError(ValueError):
    """A hunk that does not apply to a text; the message is the reason."""


@dataclass(frozen=True)
class Hunk:
    """``new`` lines that replace ``old`` ones; ``start``: the first old line's number in the original."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class FileChange:
    """The hunks of one file, in order."""

    path: str
    hunks: tuple[Hunk, ...]


def parse_diff(text: str) -> tuple[FileChange, ...]:
    """Return the changes of a diff, file by file. Raises: DiffError."""
    *lines, last = text.split("\n")
    if last or not lines:
        raise DiffError("it is empty, or has no newline at its end")
    changes: list[FileChange] = []
    at = 0
    while at < len(lines):
        change, at = _file(lines, at)
        changes.append(change)
    if len({change.path for change in changes}) < len(changes):
        raise DiffError("it changes a file twice")
    return tuple(changes)


def apply_change(change: FileChange, text: str) -> str:
    """Return a file's text with its hunks applied. Raises: HunkError for the first that does not apply."""
    lines = text.split("\n")
    changed: list[str] = []
    done = moved = 0
    for number, hunk in enumerate(change.hunks, 1):
        try:
            at = _place(lines, hunk, hunk.start - 1 + moved, done)
        except HunkError as error:
            raise HunkError(f"{change.path}, hunk {number} of {len(change.hunks)}: {error}") from None
        moved = at - (hunk.start - 1)
        changed += [*lines[done:at], *hunk.new]
        done = at + len(hunk.old)
    return "\n".join([*changed, *lines[done:]])


def _file(lines: Sequence[str], at: int) -> tuple[FileChange, int]:
    """Return the file change that begins at line ``at``, and the line after its end."""
    heads = (*lines[at : at + 2], "", "")[:2]
    path = heads[0].removeprefix(_OLD)
    if heads != (_OLD + path, _NEW + path):
        raise DiffError(f"line {at + 1} does not begin the change of a file that keeps its path")
    if not _PATH.fullmatch(path):
        raise DiffError(f'"{path}" is not a path within a tree')
    hunks: list[Hunk] = []
    at += 2
    while at < len(lines) and lines[at].startswith("@@"):
        hunk, at = _hunk(lines, at)
        if hunks and hunk.start < hunks[-1].start + len(hunks[-1].old):
            raise DiffError(f"hunks of {path} are not in order")
        hunks.append(hunk)
    if not hunks:
        raise DiffError(f"{path} has no hunk")
    return FileChange(path, tuple(hunks)), at


def _hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    found = _HUNK.fullmatch(lines[at])
    if found is None:
        raise DiffError(f"line {at + 1} does not begin a hunk")
    count, new_count = (int(one or "1") for one in (found[2], found[4]))
    old: list[str] = []
    new: list[str] = []
    end = at + 1
    while len(old) < count or len(new) < new_count:
        kind, line = (lines[end][:1], lines[end][1:]) if end < len(lines) else ("", "")
        if kind not in {" ", "-", "+"} or not kind:
            raise DiffError(f"line {end + 1} is not a hunk's line")
        old += [line] if kind in " -" else []
        new += [line] if kind in " +" else []
        end += 1
    if (len(old), len(new)) != (count, new_count) or not old or old == new:
        raise DiffError(f"the hunk at line {at + 1} does not match its header, or changes nothing")
    return Hunk(int(found[1]), tuple(old), tuple(new)), end


def _place(lines: Sequence[str], hunk: Hunk, expected: int, least: int) -> int:
    """Return the index of a hunk's first line. Raises: HunkError."""
    places = list(_matches(lines, hunk.old, least))
    if expected in places:
        return expected
    if len(places) == 1:
        return places[0]
    if places:
        raise HunkError(f"its lines occur {len(places)} times, and not at their original place")
    raise HunkError(_difference(lines, hunk, expected))


def _matches(lines: Sequence[str], old: tuple[str, ...], least: int) -> Iterator[int]:
    for at in range(least, len(lines) - len(old) + 1):
        if lines[at] == old[0] and tuple(lines[at : at + len(old)]) == old:
            yield at


def _difference(lines: Sequence[str], hunk: Hunk, expected: int) -> str:
    """Describe the first line of a hunk that does not match at its expected place."""
    for at, wanted in enumerate(hunk.old, max(expected, 0)):
        there = lines[at] if at < len(lines) else ""
        if there == wanted and at < len(lines):
            continue
        found = f'is "{there.strip()}"'
        if at >= len(lines) - 1 and not there:
            found = "is after the end of the file"
        elif there.split() == wanted.split():
            found = "has other white space"
        return f'line {at + 1} should be "{wanted.strip()}", but {found}'
    return "another hunk has changed its lines"
