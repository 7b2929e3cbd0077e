"""Read the feature set of the installation named by ``--like``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.builds.spec.features import Features, take_over
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.workspace import Workspace

_CONFIGURE, _SHARED = "CONFIGURE", "SHAREDIR"  # members of what pg_config says
_NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class InheritedFeatures:
    """The features of an installation.

    ``asked``: its name as given; ``extensions``: those available to databases.
    """

    asked: str
    major: int
    features: Features
    extensions: tuple[str, ...]

    def require_major(self, major: int, source: str) -> None:
        """Raise UsageError unless a source is of the same major version."""
        if major != self.major:
            raise UsageError(
                f'--like "{self.asked}" is PostgreSQL {self.major}, --source "{source}" is {major}',
                detail="a build takes the place of a server of its own major version: another one does not "
                "read its data,\n         and has other defaults of configure",
                hint=f"name a source of PostgreSQL {self.major}, or an installation of PostgreSQL {major}",
            )


def find_inherited_features(asked: str, place: Workspace) -> InheritedFeatures:
    """Return the features of an installation.

    It is named by its prefix, its directory of programs, or a server's name.

    Raises: UsageError, ServerError for what is none; InstallationError if nobody knows how it was built.
    """
    installation = find_installation(asked, place)
    said = _said(installation, place)
    controls = Path(said.get(_SHARED, "")).glob("extension/*.control")
    return InheritedFeatures(
        asked,
        installation.major,
        take_over(shlex.split(said[_CONFIGURE])),
        tuple(sorted(control.stem for control in controls)),
    )


def _said(installation: Installation, place: Workspace) -> dict[str, str]:
    """Return the output of pg_config, by name.

    Raises: InstallationError if it does not say what is built in.
    """
    said = installation.build_configuration(place.account)
    if isinstance(said.value, Unknown):
        raise _unknown(
            installation,
            f"{said.source}: {said.value.reason}",
            f"Debian and Ubuntu have it in postgresql-client-{installation.major}",
        )
    found = [line.partition("=") for line in said.value.splitlines()]
    members = {name.strip(): value.strip() for name, _, value in found}
    if members.get(_CONFIGURE, "") in {"", _NOT_RECORDED}:
        raise _unknown(
            installation,
            f"{said.source} names no options: it was built without any, or by meson",
            "leave --like out: support for the host's libraries is then built in",
        )
    return members


def _unknown(installation: Installation, detail: str, hint: str) -> InstallationError:
    return InstallationError(f"it is unknown how {installation.title} was built", detail=detail, hint=hint)
