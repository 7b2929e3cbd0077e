"""The use case ``build deb``: make a Debian package of an installed build.

The package can be installed alongside the distribution's own packages.
"""

from __future__ import annotations

import os
import pwd
import re
import socket
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.built_servers import find_build
from pgdyno.builds.product.debian_package import maintainer
from pgdyno.builds.product.debian_packing import Packing, require_tools
from pgdyno.builds.product.manifest import Manifest
from pgdyno.model.plans.recipe import PLAIN
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import write_whole

_SOURCE = re.compile(r"source-(\d+)")
_NEEDED_BYTES = 256 << 20  # measured: a build of 18.6 takes 60 MB, its package 10 MB
_ELSEWHERE = "remove something, or set PGDYNO_HOME to a directory on a larger disk"


@dataclass(frozen=True)
class BuildPackage:
    """A Debian package of a build, with its control file."""

    path: Path
    fields: dict[str, str]


def package_build(name: str, directory: Path, progress: Progress) -> BuildPackage:
    """Write a Debian package of a build into a directory; the same build gives the same bytes.

    Raises: UsageError for an unknown name, or no directory; RefusedError for a build that is not finished
    or not verified; InstallationError if Debian's tools are missing or fail; StorageError; LockHeldError.
    """
    place = workspace()
    prefix, manifest = _verified_build(name, place)
    if not directory.is_dir():
        raise UsageError(f'--output "{directory}" is not a directory', hint="create it, or name another")
    require_tools()
    place.require_free(_NEEDED_BYTES, "making a package", _ELSEWHERE)
    with place.measuring(), place.scratch() as work:  # packing and a measurement disturb each other
        made, fields = Packing(manifest, _maintainer(), work).run(prefix, progress.step)
        path = directory / made.name
        write_whole(path, made.read_bytes())
    return BuildPackage(path, fields)


def _verified_build(name: str, place: Workspace) -> tuple[Path, Manifest]:
    if found := _SOURCE.fullmatch(name):
        raise RefusedError(
            f"{name} cannot be packaged",
            detail="pgdyno server install made it: it is not verified, and works only at its present path",
            hint=f"pgdyno build --source debian:{found[1]} --recipe {PLAIN} makes a plain one to package",
        )
    if (
        "/" not in name
        and (place.root / "builds" / name).is_dir()
        and not (place.root / "servers" / name).is_dir()
    ):
        raise RefusedError(
            f"{name} is unfinished or failed",
            detail=f"it is still in {place.root / 'builds' / name}, and was not installed",
            hint="run the same pgdyno build again to resume it",
        )
    prefix, manifest = find_build(name, place)
    if manifest.verified is None:
        raise RefusedError(
            f"{manifest.name} is not verified",
            detail="its last verification failed; a failed build is not packaged",
            hint=f"pgdyno build verify {manifest.name} verifies it again",
        )
    return prefix, manifest


def _maintainer() -> str:
    entry = pwd.getpwuid(os.geteuid())
    return maintainer(os.environ, entry.pw_gecos.partition(",")[0], entry.pw_name, socket.gethostname())
