"""The value of ``--source``: a source tree, a tarball, or a source package of the distribution.

A fetched package becomes a tarball. Always a copy is built: a user's tree is only read.
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
"""Files made by configure: where they exist, object files of another build may exist too."""
NOT_SOURCE = frozenset({".git", ".hg", ".svn"})
_BY_AUTOCONF = (
    "trees are configured by autoconf's configure, not by meson: releases and PostgreSQL's repository "
    "have it; git checkout configure restores it"
)
_EXAMPLES = "--source debian:18, --source postgresql-18.6.tar.bz2, or --source ~/src/postgresql"


@dataclass(frozen=True)
class Package:
    """A source package from the archives of the host's apt sources."""

    major: int


@dataclass(frozen=True)
class Tarball:
    """A release tarball."""

    path: Path


@dataclass(frozen=True)
class Tree:
    """A directory with PostgreSQL's sources."""

    path: Path


def parse_source(text: str, open_tree: OpenTree) -> Package | Tarball | Tree:
    """Return the parsed ``--source``.

    Raises: UsageError if it is none of the three; RefusedError for a tree that was configured in place.
    """
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
        detail=f"{path} does not exist",
        hint=_EXAMPLES,
    )


def checksum(files: Iterable[TreeFile]) -> str:
    """Return a checksum over the names, kinds and contents of all files and links."""
    digest = hashlib.sha256()
    for file in files:
        if file.kind is not Kind.DIRECTORY:
            digest.update(b"%s\0%s\0%d\0" % (os.fsencode(file.name), file.kind.value, file.size_bytes))
            for chunk in file.chunks:
                digest.update(chunk)
    return digest.hexdigest()


def copy_tree(source: SourceTree, target: Path) -> str:
    """Copy a tree without version control files, and return the checksum of the copy.

    No other account may have write access to the directory of ``target``. Raises: StorageError if it cannot
    be written.
    """
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise _unwritten(target, error) from error
    return checksum(_copied(source.files(NOT_SOURCE), target))


def _copied(files: Iterable[TreeFile], target: Path) -> Iterator[TreeFile]:
    """Yield files that are written to ``target`` while their chunks are read."""
    for file in files:
        place = target / file.name
        try:
            if file.kind is Kind.DIRECTORY:
                place.mkdir()
            elif file.kind is Kind.LINK:
                link_target = b"".join(file.chunks)
                place.symlink_to(os.fsdecode(link_target))
                file = replace(file, chunks=iter((link_target,)))  # noqa: PLW2901 — the chunks are consumed
            else:
                place.touch(0o755 if file.kind is Kind.PROGRAM else 0o644)
                file = replace(file, chunks=_written(file, place))  # noqa: PLW2901 — written while read
        except OSError as error:
            raise _unwritten(place, error) from error
        yield file


def _written(file: TreeFile, place: Path) -> Iterator[bytes]:
    with place.open("wb") as copy:
        for chunk in file.chunks:
            try:
                copy.write(chunk)
                copy.flush()  # so that a full disk raises here, not as an error of the source
            except OSError as error:
                raise _unwritten(place, error) from error
            yield chunk
    os.utime(place, ns=(file.changed_ns, file.changed_ns))


def _unwritten(place: Path, error: OSError) -> StorageError:
    return StorageError(f'could not write "{place}"', detail=error.strerror)


def read_version(tree: SourceTree, path: Path) -> str:
    """Return the version of a tree: ``18.6``.

    Raises: InstallationError if it is not PostgreSQL's source; UsageError for an unsupported old version.
    """
    try:
        text = tree.text("configure")
    except FileNotFoundError as error:
        is_for_meson = tree.has("meson.build")
        raise InstallationError(
            f"{path} has no configure" if is_for_meson else f"{path} does not contain PostgreSQL's source",
            detail=f"{path / 'configure'}: no such file or directory",
            hint=_BY_AUTOCONF if is_for_meson else f"for example {_EXAMPLES}",
        ) from error
    return version_of(text, str(path))


def version_of(configure: str, place: str) -> str:
    """Return the version in a configure script.

    Raises: InstallationError if it is not PostgreSQL's; UsageError for an unsupported old version.
    """
    found = _VERSION.search(configure)
    if found is None or _NAME not in configure:
        raise InstallationError(
            f"{place} does not contain PostgreSQL's source", detail="its configure is not PostgreSQL's"
        )
    _require_supported(int(found["major"]), place)
    return found["version"]


def major_of(version: str) -> int:
    """Return the major version: 18 of ``18.6`` and of ``18beta1``."""
    return int(re.match(r"\d+", version)[0])  # type: ignore[index]  # read_version checked the digits


def _require_clean(tree: SourceTree, path: Path, text: str) -> None:
    read_version(tree, path)
    made = [name for name in _CONFIGURED if tree.has(name)]
    if made:
        raise RefusedError(
            f'--source "{text}" was configured in place',
            detail=f"found {', '.join(made)}: objects of that build could end up in this one",
            hint="run make distclean there, or name a clean checkout: git worktree add ../clean",
        )


def _require_supported(major: int, text: str) -> None:
    if major < OLDEST_MAJOR:
        raise UsageError(
            f'--source "{text}" is PostgreSQL {major}',
            detail=f"versions from {OLDEST_MAJOR} on can be built",
        )
