"""Select a command's PostgreSQL installation: embedded, or from a directory."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.postgres.process.installation import Installation, embedded_installation, installation_at
from pgdyno.postgres.process.local_machine import workspace


def embedded() -> Installation:
    """Return the embedded PostgreSQL. Raises: ServerError if the extra ``pgdyno[pg]`` is missing."""
    return embedded_installation(workspace())


def installation_in(bin_directory: Path) -> Installation:
    """Return the PostgreSQL with its programs in a directory. Raises: ServerError if there is none."""
    return installation_at(bin_directory, workspace().account)


def choose_installation(*, is_embedded: bool, bin_directory: Path | None) -> Installation | None:
    """Return the PostgreSQL selected by ``--embedded`` or ``--pg-bin``; None if neither is given.

    Raises: UsageError if both are given, ServerError if PostgreSQL is not found.
    """
    if is_embedded and bin_directory is not None:
        raise UsageError("--embedded and --pg-bin are mutually exclusive")
    if bin_directory is not None:
        return installation_in(bin_directory.resolve())
    return embedded() if is_embedded else None


def require_native(*installations: Installation) -> None:
    """Refuse an installation that runs under an emulator. Raises: RefusedError."""
    for one in installations:
        if one.foreign_machine:
            raise RefusedError(
                f"{one.name} cannot be measured here: it runs under an emulator",
                detail=f"its programs are for {one.foreign_machine}: their speed here is the emulator's",
                hint="measure it on such a machine; pgdyno build deb makes a package for it",
            )


def no_installation() -> NoReturn:
    """Raise UsageError: no PostgreSQL was specified."""
    raise UsageError(
        "no PostgreSQL was specified",
        hint="add --embedded, or --pg-bin DIR with the directory of its programs (pg_config --bindir), "
        "or name a server in every variant (see pgdyno server list): debian-17@default",
    )
