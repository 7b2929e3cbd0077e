"""The value of ``--source``: a source tree, a tarball, or a source package of the distribution.

A package becomes a tarball when it is fetched. What is built is always a copy: a tree of the user's is read,
and never written to.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import InstallationError, RefusedError, StorageError, UsageError
from pgdyno.builds.spec.configure_options import OLDEST_MAJOR
from pgdyno.host.files.source_tree import Kind, OpenTree, SourceTree, TreeFile

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


@dataclass(frozen=True)
class Tree:
    """A directory with PostgreSQL's sources."""

    path: Path


def parse_source(text: str, open_tree: OpenTree) -> Package | Tarball | Tree:
    """Return the parsed ``--source``. Raises: UsageError if it is none of the three; RefusedError."""
    if package := _PACKAGE.match(text):
        _require_supported(int(package[1]), text)
        return Package(int(package[1]))
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        with open_tree(path) as tree:
            _require_clean(tree, path, text)
        return Tree(path)
    if path.is_file():
        return Tarball(path)
    raise UsageError(
        f'--source "{text}" is neither a directory, nor a tarball, nor debian:MAJOR',
        detail=f"there is no {path}",
        hint=_EXAMPLES,
    )


def checksum(files: Iterable[TreeFile]) -> str:
    """Return a checksum of all files with their names and whether they are programs, and of links."""
    digest = hashlib.sha256()
    for file in files:
        if file.kind is not Kind.DIRECTORY:
            digest.update(b"%s\0%s\0%d\0" % (os.fsencode(file.name), file.kind.value, file.size_bytes))
            for chunk in file.chunks:
                digest.update(chunk)
    return digest.hexdigest()


def copy_tree(source: SourceTree, target: Path) -> str:
    """Copy a tree, without a version control's own files, and return the checksum of the copy.

    Nobody else may write in the directory of ``target``. Raises: StorageError if it cannot be written.
    """
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise _unwritten(target, error) from error
    return checksum(_copied(source.files(NOT_SOURCE), target))


def _copied(files: Iterable[TreeFile], target: Path) -> Iterator[TreeFile]:
    """Yield files that are written as they are read."""
    for file in files:
        place = target / file.name
        try:
            if file.kind is Kind.DIRECTORY:
                place.mkdir()
            elif file.kind is Kind.LINK:
                goal = b"".join(file.chunks)
                place.symlink_to(os.fsdecode(goal))
                file = replace(file, chunks=iter((goal,)))  # noqa: PLW2901 — it was read
            else:
                place.touch(0o755 if file.kind is Kind.PROGRAM else 0o644)
                file = replace(file, chunks=_written(file, place))  # noqa: PLW2901 — it is written when read
        except OSError as error:
            raise _unwritten(place, error) from error
        yield file


def _written(file: TreeFile, place: Path) -> Iterator[bytes]:
    with place.open("wb") as copy:
        for chunk in file.chunks:
            try:
                copy.write(chunk)
                copy.flush()  # so that a full disk is no error of the source
            except OSError as error:
                raise _unwritten(place, error) from error
            yield chunk
    os.utime(place, ns=(file.changed_ns, file.changed_ns))


def _unwritten(place: Path, error: OSError) -> StorageError:
    return StorageError(f'could not write "{place}"', detail=error.strerror)


def read_version(tree: SourceTree, path: Path) -> str:
    """Return the version of a tree: ``18.6``.

    Raises: InstallationError if it is not PostgreSQL's; UsageError for a version that is too old.
    """
    try:
        text = tree.text("configure")
    except FileNotFoundError as error:
        is_for_meson = tree.has("meson.build")
        raise InstallationError(
            f"{path} has no configure" if is_for_meson else f"{path} holds no sources of PostgreSQL",
            detail=f"{path / 'configure'}: no such file or directory",
            hint=_BY_AUTOCONF if is_for_meson else f"for example {_EXAMPLES}",
        ) from error
    return version_of(text, str(path))


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


def _require_clean(tree: SourceTree, path: Path, text: str) -> None:
    read_version(tree, path)
    made = [name for name in _CONFIGURED if tree.has(name)]
    if made:
        raise RefusedError(
            f'--source "{text}" was configured in place',
            detail=f"found {', '.join(made)}: objects of that build could end up in this one",
            hint="make distclean there, or name a clean checkout: git worktree add ../clean",
        )


def _require_supported(major: int, text: str) -> None:
    if major < OLDEST_MAJOR:
        raise UsageError(
            f'--source "{text}" is PostgreSQL {major}',
            detail=f"versions from {OLDEST_MAJOR} on can be built",
        )
