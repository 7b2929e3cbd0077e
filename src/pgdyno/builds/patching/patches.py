"""The catalogue of patches, ``patches/<major>/<name>.patch`` next to this package, and applying them.

A patch file begins with lines ``Title:``, ``Idea:``, ``Release:`` and ``Verdict:``, then some paragraphs. Its
diff begins at the first line with ``---``. Only the diff affects a build's name, so the verdict can change.
A verdict is ``not measured yet``, or the patch's effect alone and with which others, with figures of
docs/results: each difference with its interval in brackets, and the machine.

Patches are applied to an unpacked source tree before any other account can write to it. A tree is not
trusted: no link in it is followed, and only regular files with one hard link are changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pgdyno.base.errors import InstallationError, StorageError, UsageError
from pgdyno.builds.patching.unified_diff import DiffError, FileChange, HunkError, apply_change, parse_diff

PATCHES = Path(__file__).parents[1] / "patches"
_FIELD = re.compile(r"^(Title|Idea|Release|Verdict): (.+(?:\n .+)*)$", re.MULTILINE)
_DIFF = re.compile(r"^--- ", re.MULTILINE)
_IN = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGING = (
    os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # O_NONBLOCK: opening a FIFO does not block


@dataclass(frozen=True)
class Patch:
    """One patch. ``sha256``: of its diff."""

    name: str  # send-buffer
    major: int
    title: str  # its effect, in half a line
    idea: str  # author and source of the idea
    release: str  # the version it was made for: 18.6
    verdict: str  # measured effect
    sha256: str
    changes: tuple[FileChange, ...]

    @property
    def described(self) -> dict[str, str | int]:
        """All fields except the diff, for a document."""
        names = ("name", "major", "title", "idea", "release", "verdict", "sha256")
        return {name: getattr(self, name) for name in names}


def known_patches() -> tuple[Patch, ...]:
    """Return all patches, in the order of application. Raises: InstallationError."""
    return tuple(_parsed(path) for path in sorted(PATCHES.glob("*/*.patch")))


def require_known(names: Sequence[str]) -> None:
    """Raise UsageError for a name that exists for no version, or that is given twice."""
    known = known_patches()
    for name in names:
        if name not in {patch.name for patch in known}:
            listed = "; ".join(f"{patch.name}: {patch.title}" for patch in known)
            raise UsageError(f'patch "{name}" does not exist', detail=f"existing patches: {listed}")
        if names.count(name) > 1:
            raise UsageError(f"--patch {name} is given twice")


def choose_patches(names: Sequence[str], major: int) -> tuple[Patch, ...]:
    """Return the named patches for a version. Raises: UsageError for a patch without that version."""
    of_version = [patch for patch in known_patches() if patch.major == major]
    there = [patch.name for patch in of_version]
    for name in names:
        if name not in there:
            raise UsageError(
                f'patch "{name}" does not exist for PostgreSQL {major}',
                detail=f"existing patches: {', '.join(there) or 'none'}",
            )
    return tuple(patch for patch in of_version if patch.name in names)


def _parsed(path: Path) -> Patch:
    text = path.read_text()
    begins = _DIFF.search(text)
    head, diff = (text, "") if begins is None else (text[: begins.start()], text[begins.start() :])
    fields = dict(_fields(head))
    try:
        return Patch(
            name=path.stem,
            major=int(path.parent.name),
            title=fields["Title"],
            idea=fields["Idea"],
            release=fields["Release"],
            verdict=fields["Verdict"],
            sha256=hashlib.sha256(diff.encode()).hexdigest(),
            changes=parse_diff(diff),
        )
    except KeyError as error:
        raise InstallationError(f"{path} is damaged", detail=f"it has no line {error.args[0]}:") from error
    except DiffError as error:
        raise InstallationError(f"{path} is damaged", detail=str(error)) from error


def _fields(head: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a header; continuation lines begin with a space."""
    for found in _FIELD.finditer(head):
        yield found[1], " ".join(found[2].split())


def apply_patches(patches: Sequence[Patch], tree: Path, version: str) -> None:
    """Apply patches to a tree of a version.

    Raises: UsageError for the first patch that does not apply, with file, hunk and the text found instead;
    StorageError if the disk is full. After an error the tree is partly changed and unusable.
    """
    for patch in patches:
        for change in patch.changes:
            try:
                _apply(change, tree)
            except HunkError as error:
                raise UsageError(
                    f'the patch "{patch.name}" does not apply to PostgreSQL {version}',
                    detail=str(error),
                    hint=f"it was made for PostgreSQL {patch.release}: build that version, or omit the patch",
                ) from error


def _apply(change: FileChange, tree: Path) -> None:
    with os.fdopen(_opened(tree, change.path), "r+b") as file:
        # All bytes are preserved, and only "\n" ends a line.
        text = file.read().decode("utf-8", "surrogateescape")
        changed = apply_change(change, text).encode("utf-8", "surrogateescape")
        try:
            file.seek(0)
            file.truncate()
            file.write(changed)
            file.flush()
        except OSError as error:
            raise StorageError(f'could not write "{tree / change.path}"', detail=error.strerror) from error


def _opened(tree: Path, path: str) -> int:
    """Return the descriptor of a file of a tree, open for changes. Raises: HunkError if there is none."""
    *directories, name = PurePosixPath(path).parts
    with ExitStack() as passed:
        try:
            above = os.open(tree, _IN)
            passed.callback(os.close, above)
            for directory in directories:
                above = os.open(directory, _IN, dir_fd=above)
                passed.callback(os.close, above)
            descriptor = os.open(name, _CHANGING, dir_fd=above)
        except OSError as error:
            raise HunkError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise HunkError(f"{path}: not a regular file with one hard link")
