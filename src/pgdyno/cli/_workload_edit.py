"""Editing a workload's file: a text that cannot be read again does not replace it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from pgdyno.app.workload_files import read_workload
from pgdyno.model.errors import UsageError

_DRAFT = ".draft"  # after the file's name


def edit_workload(file: Path) -> bool:
    """Open a copy in the user's editor, and replace the file by it; return whether it was changed.

    Raises: UsageError for a file that is no workload, an editor that fails, and a copy with mistakes, which
    is kept for the next time.
    """
    draft = file.with_name(file.name + _DRAFT)
    if not draft.exists():
        read_workload(file)
        shutil.copy(file, draft)  # with its mode: it may have values of rows
    _run_editor(draft)
    try:
        read_workload(draft)
    except UsageError as error:
        error.hint = f'"{file}" is as it was; the same command goes on with "{draft}"'
        raise
    is_changed = draft.read_bytes() != file.read_bytes()
    draft.replace(file)
    return is_changed


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
            f'the editor "{editor}" ended with status {status}',
            hint=f'the same command goes on with "{draft}"',
        )
