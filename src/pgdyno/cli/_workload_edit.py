"""Edit a workload file; a text that does not parse never replaces it."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.host.files.trusted_files import require_trusted
from pgdyno.store.files import open_plain
from pgdyno.workload.workload_choice import read_workload

_DRAFT = ".draft"  # after the file's name


def edit_workload(file: Path) -> bool:
    """Open a copy in the user's editor and replace the file with it; return whether it was changed.

    Raises: UsageError for a file that is not a workload, a failed editor, or a draft with errors (the draft
    is kept for the next attempt); RefusedError if other users could replace the draft.
    """
    draft = file.with_name(file.name + _DRAFT)
    require_trusted(draft, "the editor writes it, as you", "copy the workload to a directory that you own")
    if not os.path.lexists(draft):
        read_workload(file)
        _copy(file, draft)
    _require_plain(draft)
    _run_editor(draft)
    try:
        read_workload(draft)
    except UsageError as error:
        error.hint = f'"{file}" is unchanged; run the same command to continue with "{draft}"'
        raise
    is_changed = draft.read_bytes() != file.read_bytes()
    draft.replace(file)
    return is_changed


def _copy(file: Path, draft: Path) -> None:
    """Copy a file with its mode: it may contain row data."""
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open_plain(file) as source, os.fdopen(descriptor, "wb") as target:
        shutil.copyfileobj(source, target)
        os.fchmod(target.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode))


def _require_plain(draft: Path) -> None:
    status = draft.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise RefusedError(
            f'"{draft}" is a link, or not a regular file',
            detail="the editor would write to its target",
            hint="remove it, and try again",
        )


def _run_editor(draft: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), str(draft)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(
            f'could not run the editor "{editor}"', detail=str(error), hint="name one in $EDITOR"
        ) from error
    if status != 0:
        raise UsageError(
            f'the editor "{editor}" exited with status {status}',
            hint=f'run the same command to continue with "{draft}"',
        )
