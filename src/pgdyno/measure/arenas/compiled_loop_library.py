"""Compile pgdyno_loop, our extension in C, for one installation, without installing it.

One call of a compiler with the installation's own headers is all that it takes: what PGXS would add are the
flags of the compiler that PostgreSQL was built with, which may be another one than is here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import InstallationError
from pgdyno.host.processes.running import capture, is_installed

_COMPILERS = ("cc", "gcc", "clang")  # the first one found
# PostgreSQL's headers rely on the first two: configure gives them to every build.
_FLAGS = ("-fno-strict-aliasing", "-fwrapv", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared")
_SCRIPT = "pgdyno_loop--1.0.sql"
_PARTS = ("pgdyno_loop.c", "parameters.c", "parameters.h", _SCRIPT)
_HEADERS = ("postgres.h", "pg_config.h")  # all of them come together
_LIMIT_S = 60.0  # arbitrary: it takes a second
_LAST_LINES = 8
_INCLUDES = re.compile(r"^INCLUDEDIR-SERVER = (/.+)$", re.MULTILINE)
_VERSION_NUMBER = re.compile(r"^#define PG_VERSION_NUM (\d+)$", re.MULTILINE)


_PACKAGE = Path(__file__).parents[2]  # pgdyno itself


@dataclass(frozen=True)
class LoopSources:
    """The extension's files, as they are in pgdyno: by name."""

    files: Mapping[str, bytes]

    @classmethod
    def find(cls, package: Path = _PACKAGE) -> LoopSources:
        """Return the sources: those of an installed pgdyno, or of the checkout that this one runs from."""
        packed = package / "extension" / "pgdyno_loop"
        directory = packed if packed.is_dir() else package.parents[1] / "extension" / "pgdyno_loop"
        return cls({name: (directory / name).read_bytes() for name in _PARTS})

    @property
    def script(self) -> str:
        """The statements that make the functions, as ``CREATE EXTENSION`` would run them."""
        _, _, statements = self.files[_SCRIPT].decode().partition("\\quit\n")
        return statements

    def identity(self, *others: str) -> str:
        """Return a hash of the sources and their target."""
        said = [*(text.encode() for text in others), *self.files.values()]
        return hashlib.sha256(b"\0".join(said)).hexdigest()[:12]

    def write(self, directory: Path) -> None:
        """Write all files into a directory."""
        for name, content in self.files.items():
            (directory / name).write_bytes(content)


def find_headers(title: str, major: int, configuration: str | None) -> Path:
    """Return the directory of a server's own headers, once all is there that compiling takes.

    ``configuration`` is what its pg_config prints, None: it has none. ``title`` is what errors call it.
    Raises: InstallationError naming everything that is missing and the packages that have it.
    """
    found = _INCLUDES.search(configuration or "")
    headers = Path(found[1]) if found else None
    missing = {}
    if not any(map(is_installed, _COMPILERS)):
        missing["a C compiler"] = "gcc libc6-dev"
    if headers is None:
        missing["pg_config"] = f"postgresql-server-dev-{major}"
    else:
        lacking = [headers / name for name in _HEADERS if not (headers / name).is_file()]
        missing.update({str(path): f"postgresql-server-dev-{major}" for path in lacking[:1]})
    if missing or headers is None:
        raise InstallationError(
            f"the functions that loop inside the server cannot be compiled for {title} yet",
            detail=f"missing: {', '.join(missing)}",
            hint=f"apt-get install {' '.join(missing.values())}, or measure another PostgreSQL: --embedded",
        )
    _require_version(title, major, headers)
    return headers


def compile_library(
    sources: Path, headers: Path, library: Path, run_as: Callable[[Sequence[str]], list[str]]
) -> None:
    """Compile the sources in a directory. Raises: InstallationError with the compiler's last words."""
    compiler = next(filter(is_installed, _COMPILERS))
    units = [str(sources / name) for name in _PARTS if name.endswith(".c")]
    argv = [compiler, *_FLAGS, "-isystem", str(headers), "-o", str(library), *units]
    done = capture(run_as(argv), limit_s=_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(
            f"the functions that loop inside the server could not be compiled with the headers in {headers}",
            detail="\n         ".join(done.stderr.strip().splitlines()[-_LAST_LINES:]),
            hint="are those the headers of this very server, and is libc6-dev installed?",
        )


def _require_version(title: str, major: int, headers: Path) -> None:
    found = _VERSION_NUMBER.search((headers / "pg_config.h").read_text(errors="replace"))
    number = int(found[1]) // 10000 if found else 0
    if number != major:
        raise InstallationError(
            f"the headers of {title} are of another version",
            detail=f"those in {headers} are of PostgreSQL {number or 'no known version'}",
            hint=f"apt-get install postgresql-server-dev-{major}, or name the programs of that version",
        )
