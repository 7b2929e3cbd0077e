"""Proof that the file or link that chooses a server's programs is the server's own.

The server itself names its configuration, and root follows: another user's server could name the files of a
cluster that is not its own.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.base.errors import RefusedError
from pgdyno.postgres.inspection.configuration_file import read_configuration
from pgdyno.postgres.process.account import acting_as


def require_owners(choice: Path, files: ServerFiles) -> None:
    """Refuse a link, or a file, in a directory of another user than the server's owner and root.

    Raises: RefusedError; DataDirectoryError.
    """
    owner = files.owner()
    try:
        uid = choice.parent.stat().st_uid
    except OSError as error:
        raise RefusedError(f"{choice.parent} cannot be looked at", detail=error.strerror) from error
    if uid not in (0, owner):
        raise RefusedError(
            f"{choice} is not this server's to change",
            detail=f"{choice.parent} belongs to user {uid}, and {files.path} to user {owner}",
            hint="the directory of what chooses a server's programs belongs to the server's user, or to root",
        )


def require_own_configuration(configuration: Path, files: ServerFiles) -> None:
    """Refuse a configuration file that does not name this server's data directory, as Debian's do.

    Raises: RefusedError; DataDirectoryError.
    """
    named = _data_directory_in(configuration, files.owner())
    if named is None or not _is_same(Path(named), files.path):
        raise RefusedError(
            f"{configuration} is not this server's own",
            detail=f"its data_directory is {named or 'not set'}, and the server's is {files.path}",
            hint="files made by pg_createcluster name it; those of other clusters are left alone",
        )


def _data_directory_in(configuration: Path, owner: int) -> str | None:
    """Return the data directory that a configuration names, read with the rights of the server's owner."""
    try:
        with acting_as(owner) if os.geteuid() == 0 else nullcontext():
            settings = list(read_configuration(configuration))
    except OSError as error:
        raise RefusedError(
            f"{configuration} cannot be read by the server's user",
            detail=f"{error.filename}: {error.strerror}",
        ) from error
    return next((one.value for one in reversed(settings) if one.name == "data_directory"), None)


def _is_same(named: Path, path: Path) -> bool:
    try:
        return named.samefile(path)
    except OSError:  # there is no such directory
        return False
