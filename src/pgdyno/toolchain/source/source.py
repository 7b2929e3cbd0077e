"""The value of ``--source``: a source tree, a tarball, or a source package of the distribution.

A package becomes a tarball when it is fetched. What is built is always a copy: a tree of the user's is read,
and never written to.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.errors import InstallationError, RefusedError, UsageError
from pgdyno.toolchain.spec.recipe import OLDEST_MAJOR

_PACKAGE = re.compile(r"^debian:(\d+)$")
_VERSION = re.compile(r"^PACKAGE_VERSION='(?P<version>(?P<major>\d+)[^']*)'$", re.MULTILINE)
_NAME = "PACKAGE_NAME='PostgreSQL'"
_CONFIGURED = ("GNUmakefile", "src/Makefile.global", "src/include/pg_config.h", "config.status")
"""Files that configure makes: where they are, object files of some other build may be too."""
NOT_SOURCE = frozenset({".git", ".hg", ".svn"})
_BY_AUTOCONF = (
    "trees are configured by autoconf's configure, not by meson: releases have it, and so has PostgreSQL's "
    "repository; git checkout configure brings it back"
)
_EXAMPLES = "--source debian:18, --source postgresql-18.6.tar.bz2, or --source ~/src/postgresql"


@dataclass(frozen=True)
class Package:
    """A source package of the archives that this host's apt knows."""

    major: int


@dataclass(frozen=True)
class Tarball:
    """A release, as PostgreSQL publishes it."""

    path: Path

    @property
    def sha256(self) -> str:
        """The file's checksum."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Tree:
    """A directory with PostgreSQL's sources."""

    path: Path

    @property
    def sha256(self) -> str:
        """A checksum of all files with their names and whether they are programs, and of links."""
        digest = hashlib.sha256()
        for file in source_files(self.path):
            is_link, is_program = file.is_symlink(), os.access(file, os.X_OK)
            content = bytes(file.readlink()) if is_link else file.read_bytes()
            kind = b"link" if is_link else b"program" if is_program else b"file"
            name = str(file.relative_to(self.path)).encode()
            digest.update(b"%s\0%s\0%d\0" % (name, kind, len(content)))
            digest.update(content)
        return digest.hexdigest()


def parse_source(text: str) -> Package | Tarball | Tree:
    """Return the parsed ``--source``. Raises: UsageError if it is none of the three; RefusedError."""
    if package := _PACKAGE.match(text):
        _require_supported(int(package[1]), text)
        return Package(int(package[1]))
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        return _checked_tree(path, text)
    if path.is_file():
        return Tarball(path)
    raise UsageError(
        f'--source "{text}" is neither a directory, nor a tarball, nor debian:MAJOR',
        detail=f"there is no {path}",
        hint=_EXAMPLES,
    )


def source_files(tree: Path) -> Iterator[Path]:
    """Yield the files of a source tree in a fixed order, without a version control's own."""
    for directory, names, files in os.walk(tree):
        names[:] = sorted(name for name in names if name not in NOT_SOURCE)
        links = [name for name in names if (Path(directory) / name).is_symlink()]
        kept = [name for name in (*files, *links) if name not in NOT_SOURCE]  # .git is a file in a worktree
        yield from (Path(directory) / name for name in sorted(kept))


def read_version(tree: Path) -> str:
    """Return the version of an unpacked tree: ``18.6``.

    Raises: InstallationError if it is not PostgreSQL's; UsageError for a version that is too old.
    """
    configure = tree / "configure"
    try:
        text = configure.read_text(errors="replace")
    except OSError as error:
        is_for_meson = (tree / "meson.build").is_file()
        raise InstallationError(
            f"{tree} has no configure" if is_for_meson else f"{tree} holds no sources of PostgreSQL",
            detail=f"{configure}: {str(error.strerror).lower()}",
            hint=_BY_AUTOCONF if is_for_meson else f"for example {_EXAMPLES}",
        ) from error
    return version_of(text, str(tree))


def version_of(configure: str, place: str) -> str:
    """Return the version that a configure script is for.

    Raises: InstallationError if it is not PostgreSQL's; UsageError for a version that is too old.
    """
    found = _VERSION.search(configure)
    if found is None or _NAME not in configure:
        raise InstallationError(
            f"{place} holds no sources of PostgreSQL", detail="its configure is another's"
        )
    _require_supported(int(found["major"]), place)
    return found["version"]


def major_of(version: str) -> int:
    """Return the major version: 18 of ``18.6`` and of ``18beta1``."""
    return int(re.match(r"\d+", version)[0])  # type: ignore[index]  # read_version has seen the digits


def _checked_tree(path: Path, text: str) -> Tree:
    read_version(path)
    made = [name for name in _CONFIGURED if (path / name).exists()]
    if made:
        raise RefusedError(
            f'--source "{text}" was configured in place',
            detail=f"found {', '.join(made)}: objects of that build could end up in this one",
            hint="make distclean there, or name a clean checkout: git worktree add ../clean",
        )
    return Tree(path)


def _require_supported(major: int, text: str) -> None:
    if major < OLDEST_MAJOR:
        raise UsageError(
            f'--source "{text}" is PostgreSQL {major}',
            detail=f"versions from {OLDEST_MAJOR} on can be built",
        )
