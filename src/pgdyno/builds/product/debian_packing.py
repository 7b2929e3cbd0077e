"""Make a Debian package of an installed build with dpkg-shlibdeps and dpkg-deb.

The files are the verified ones, byte for byte; their times and permissions are normalised, so that the same
build gives the same package. No privileges are needed: dpkg-deb records root as the owner of all files.
"""

from __future__ import annotations

import gzip
import os
import pwd
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError, RefusedError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.built_servers import find_build
from pgdyno.builds.needs.prerequisites import Need
from pgdyno.builds.product.debian_package import (
    changelog,
    control_fields,
    control_text,
    copyright_text,
    made_at,
    maintainer,
    package_name,
    place_of,
)
from pgdyno.builds.product.manifest import Manifest
from pgdyno.builds.spec.foreign import parse_machine
from pgdyno.host.processes.running import clean_environment, is_installed, output_of
from pgdyno.model.plans.recipe import PLAIN
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import write_whole

_TOOLS = (Need("dpkg-deb", "dpkg"), Need("dpkg-shlibdeps", "dpkg-dev"), Need("objdump", "binutils"))
_NAMES_ITS_PLACE = "lib/pkgconfig"
"""pkg-config files for programs that link with libpq: they contain the build's original prefix. PGXS
makefiles contain it too, but prefer the output of pg_config, which finds its own location."""
_CONTROL = "Source: pgdyno\n\nPackage: pgdyno\nArchitecture: any\n"  # dpkg-shlibdeps requires a control file
_SEARCHED = re.compile(r"^(\S.*):\s+file format|^\s+R(?:UN)?PATH\s+(\S+)$", re.MULTILINE)
_FOR_TESTS = "pgxs"  # all its programs run tests; in lib/postgresql, or lib if the prefix names PostgreSQL
_ELF, _EXECUTABLE, _ORDINARY = b"\x7fELF", 0o755, 0o644


@dataclass(frozen=True)
class Packing:
    """One package to make in ``work``, an empty directory; ``by``: its maintainer."""

    manifest: Manifest
    by: str
    work: Path

    def run(self, prefix: Path, report: Callable[[str], None]) -> tuple[Path, dict[str, str]]:
        """Make a package of ``prefix``; return its path, and the fields of its control file.

        Raises: InstallationError for a build that cannot be moved, for libraries that are in no package, and
        with the last lines of Debian's tools if they fail.
        """
        report("copying the build")
        self._lay_out(prefix)
        report("determining package dependencies")
        programs = [str(path) for path in _elf_files(self._place)]
        require_movable(output_of(["objdump", "-p", *programs]))
        fields = control_fields(
            self.manifest,
            by=self.by,
            architecture=self._architecture,
            depends=self._depends(programs),
            installed_kib=_installed_kib(self._root / "usr"),
        )
        (self._root / "DEBIAN/control").write_text(control_text(fields))
        _normalise(self._root, made_at(self.manifest).timestamp())
        report("packing")
        return self._pack(fields), fields

    @property
    def _architecture(self) -> str:
        if foreign := parse_machine(self.manifest.machine):
            return foreign.architecture
        return output_of(["dpkg", "--print-architecture"]).strip()

    @property
    def _root(self) -> Path:
        return self.work / "root"

    @property
    def _place(self) -> Path:
        return self._root / place_of(self.manifest)

    def _lay_out(self, prefix: Path) -> None:
        """Copy all files into the package's root directory."""
        documents = self._root / "usr/share/doc" / package_name(self.manifest)
        for directory in (self._root / "DEBIAN", self._place, documents):
            directory.mkdir(parents=True)
        # Hard links between directories cannot be kept if those are on different file systems.
        output_of(["cp", "--archive", "--no-preserve=links", f"{prefix}/.", str(self._place)])
        shutil.rmtree(self._place / _NAMES_ITS_PLACE, ignore_errors=True)
        (documents / "copyright").write_text(copyright_text((self._place / "bin/psql").read_bytes()))
        text = changelog(self.manifest, self.by).encode()
        (documents / "changelog.gz").write_bytes(gzip.compress(text, mtime=0))

    def _depends(self, programs: Sequence[str]) -> str:
        """Return the packages of all required libraries. Raises: InstallationError."""
        debian = self.work / "debian"
        debian.mkdir()
        (debian / "control").write_text(_CONTROL)
        argv = ["dpkg-shlibdeps", "-O", *(f"-e{one}" for one in programs)]
        environment = clean_environment(DEB_HOST_ARCH=self._architecture)  # selects libraries to search
        try:
            output = output_of(argv, cwd=self.work, environment=environment)
        except InstallationError as error:
            raise InstallationError(
                "could not determine the packages that the build needs",
                detail=error.detail,
                hint=f"install the libraries it was built with from packages for {self._architecture}",
            ) from error
        return output.strip().removeprefix("shlibs:Depends=")

    def _pack(self, fields: Mapping[str, str]) -> Path:
        made = self.work / f"{fields['Package']}_{fields['Version']}_{fields['Architecture']}.deb"
        environment = clean_environment(
            SOURCE_DATE_EPOCH=f"{made_at(self.manifest).timestamp():.0f}",
            DPKG_DEB_THREADS_MAX="1",  # xz's output depends on the number of threads
        )
        # xz, because dpkg of Debian 11 cannot read the default compression of other distributions.
        argv = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(self._root), str(made)]
        output_of(argv, environment=environment)
        return made


def require_tools() -> None:
    """Raise InstallationError naming the packages of missing Debian tools."""
    missing = [need for need in _TOOLS if not is_installed(need.name)]
    if missing:
        raise InstallationError(
            "Debian packages cannot be made on this host yet",
            detail=f"missing: {', '.join(need.name for need in missing)}",
            hint=f"apt-get install {' '.join(need.package for need in missing)}",
        )


def require_movable(objdump_output: str) -> None:
    """Raise InstallationError for a program with an absolute RPATH, from the output of ``objdump -p``."""
    program = ""
    for named, places in _SEARCHED.findall(objdump_output):
        program = named or program
        fixed = [place for place in places.split(":") if place and not place.startswith("$ORIGIN")]
        if fixed:
            raise InstallationError(
                "the build cannot be packaged, because it cannot be moved",
                detail=f"{Path(program).name} looks for its libraries in {fixed[0]}",
                hint="build again: current builds find libraries relative to their programs",
            )


def _elf_files(place: Path) -> Iterator[Path]:
    """Yield programs and libraries, in order, except those that run extensions' tests.

    Makefiles give the latter the path of libpq; without it they would depend on the distribution's libpq.
    """
    for path in sorted(place.rglob("*")):
        if path.is_file() and not path.is_symlink() and _FOR_TESTS not in path.relative_to(place).parts:
            with path.open("rb") as file:
                if file.read(len(_ELF)) == _ELF:
                    yield path


def _installed_kib(tree: Path) -> int:
    """Return the installed size by Debian policy 5.6.20, which does not depend on the file system."""
    paths = [path for path in tree.rglob("*") if not path.is_symlink()]
    return sum(-(-path.stat().st_size // 1024) if path.is_file() else 1 for path in paths)


def _normalise(root: Path, time_s: float) -> None:
    """Make times and permissions independent of the files' creation time and umask."""
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            # Libraries are not executable: Debian policy 8.1.
            is_run = path.is_dir() or (path.stat().st_mode & 0o100 and ".so" not in path.suffixes)
            path.chmod(_EXECUTABLE if is_run else _ORDINARY)
        os.utime(path, (time_s, time_s), follow_symlinks=False)


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
