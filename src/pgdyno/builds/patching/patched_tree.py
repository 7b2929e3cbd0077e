"""Apply patches to an unpacked source tree, before anybody else may write to it.

A tree may be of anybody's making: no link of it is followed, and only plain files with one name are changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.builds.patching.catalogue import Patch
from pgdyno.builds.patching.unified_diff import FileChange, HunkError, apply_change

_IN = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGING = (
    os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # O_NONBLOCK: a FIFO keeps nobody waiting


def apply_patches(patches: Sequence[Patch], tree: Path, version: str) -> None:
    """Apply patches to a tree of a version.

    Raises: UsageError for the first that does not fit: which file, which hunk, and what is there instead;
    StorageError if the disk is full. The tree is half changed then, and of no use.
    """
    for patch in patches:
        for change in patch.changes:
            try:
                _apply(change, tree)
            except HunkError as error:
                raise UsageError(
                    f'the patch "{patch.name}" does not apply to PostgreSQL {version}',
                    detail=str(error),
                    hint=f"it was made for PostgreSQL {patch.release}: build that, or leave the patch out",
                ) from error


def _apply(change: FileChange, tree: Path) -> None:
    with os.fdopen(_opened(tree, change.path), "r+b") as file:
        # Any bytes are kept as they are, and only "\n" ends a line.
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
    """Return a file of a tree, opened for changes. Raises: HunkError if it is none."""
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
    raise HunkError(f"{path}: it is no plain file with one name")
