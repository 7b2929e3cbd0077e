"""Provide scratch servers with functions that run queries in a loop inside the server.

The library is compiled for each server and kept in pgdyno's directory, named after the server and a hash of
the sources. Functions in a scratch database refer to it by path; nothing is written to an installation.

A single compiler call with the installation's headers is enough. PGXS would add the flags of the compiler
that built PostgreSQL, which may differ from the one here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from pgdyno.base.errors import InstallationError
from pgdyno.host.processes.running import capture, is_installed
from pgdyno.model.experiments.workload import SCHEMA
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE, Instance
from pgdyno.postgres.process.workspace import Workspace

_COMPILERS = ("cc", "gcc", "clang")  # the first one found
# PostgreSQL's headers rely on the first two, which configure sets in every build.
_FLAGS = ("-fno-strict-aliasing", "-fwrapv", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared")
_SCRIPT = "pgdyno_loop--1.0.sql"
_PARTS = ("pgdyno_loop.c", "parameters.c", "parameters.h", _SCRIPT)
_HEADERS = ("postgres.h", "pg_config.h")  # installed together with all others
_LIMIT_S = 60.0  # arbitrary: compiling takes a second
_LAST_LINES = 8
_INCLUDES = re.compile(r"^INCLUDEDIR-SERVER = (/.+)$", re.MULTILINE)
_VERSION_NUMBER = re.compile(r"^#define PG_VERSION_NUM (\d+)$", re.MULTILINE)
_PACKAGE = Path(__file__).parents[2]  # the package pgdyno


@dataclass(frozen=True)
class LoopSources:
    """The extension's source files, by name."""

    files: Mapping[str, bytes]

    @classmethod
    def find(cls, package: Path = _PACKAGE) -> LoopSources:
        """Return the sources in an installed pgdyno, or in the checkout it runs from."""
        packed = package / "extension" / "pgdyno_loop"
        directory = packed if packed.is_dir() else package.parents[1] / "extension" / "pgdyno_loop"
        return cls({name: (directory / name).read_bytes() for name in _PARTS})

    @property
    def script(self) -> str:
        """The statements that create the functions, as ``CREATE EXTENSION`` would run them."""
        _, _, statements = self.files[_SCRIPT].decode().partition("\\quit\n")
        return statements

    def identity(self, *others: str) -> str:
        """Return a hash of the sources and their target."""
        hashed = [*(text.encode() for text in others), *self.files.values()]
        return hashlib.sha256(b"\0".join(hashed)).hexdigest()[:12]

    def write(self, directory: Path) -> None:
        """Write all files into a directory."""
        for name, content in self.files.items():
            (directory / name).write_bytes(content)


@dataclass(frozen=True)
class LoopLibraries:
    """Compiled libraries, by installation; incomplete ones are in ``scratch``."""

    workspace: Workspace
    scratch: Path

    def ensure(self, installation: Installation) -> Path:
        """Return the library for an installation; compile it on first use.

        Raises: InstallationError naming what is missing, or with the compiler's message.
        """
        sources = LoopSources.find()
        configuration = installation.build_configuration(self.workspace.account).or_else("")
        identity = sources.identity(configuration, installation.version)
        name = f"pgdyno_loop-pg{installation.version}-{identity}.so"
        library = self.workspace.extensions() / name
        if not library.is_file():
            headers = find_headers(installation.title, installation.major, configuration)
            complete = self.scratch / name
            complete.write_bytes(self._compiled(sources, headers))
            complete.chmod(0o755)
            complete.rename(library)
        return library

    def make_functions(self, server: Instance) -> None:
        """Create the functions in a scratch server's database, in a separate schema.

        Raises: InstallationError with the server's message if it rejects the library.
        """
        library = self.ensure(server.installation)
        script = LoopSources.find().script.replace("@extschema@", SCHEMA)
        try:
            with server.connect(DATABASE) as connection, connection.transaction():
                path = sql.Literal(str(library)).as_string(connection)
                connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
                connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
                # To the role of load hosts.
                connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC".encode())
                connection.execute(f"SET LOCAL search_path = {SCHEMA}".encode())
                connection.execute(script.replace("'MODULE_PATHNAME'", path).encode())
        except psycopg.errors.Error as error:
            message = (error.diag.message_primary or str(error).strip(), error.diag.message_detail)
            raise InstallationError(
                f"{server.installation.title} rejects the functions that loop inside the server",
                detail="; ".join(filter(None, message)),
                hint=f'remove "{library}" to have them compiled again',
            ) from error

    def _compiled(self, sources: LoopSources, headers: Path) -> bytes:
        """Compile as the servers' account, which may read less than root: headers may belong to anyone."""
        place = self.scratch / "pgdyno_loop"
        made = place / "made"
        made.mkdir(parents=True)
        place.chmod(0o755)
        sources.write(place)
        self.workspace.account.own(made)
        try:
            compile_library(place, headers, made / "library", self.workspace.account.run_as)
            # In that account's directory, the name could be a symbolic link.
            with os.fdopen(os.open(made / "library", os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read()
        finally:
            shutil.rmtree(place)


def find_headers(title: str, major: int, configuration: str | None) -> Path:
    """Return the directory of a server's headers, provided that compiling is possible.

    ``configuration`` is the output of its pg_config; None if it has none. Errors call the server ``title``.
    Raises: InstallationError naming everything that is missing, and the packages to install.
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
            hint=f"apt-get install {' '.join(missing.values())}, or use another PostgreSQL: --embedded",
        )
    _require_version(title, major, headers)
    return headers


def compile_library(
    sources: Path, headers: Path, library: Path, run_as: Callable[[Sequence[str]], list[str]]
) -> None:
    """Compile the sources in a directory. Raises: InstallationError with the compiler's last lines."""
    compiler = next(filter(is_installed, _COMPILERS))
    units = [str(sources / name) for name in _PARTS if name.endswith(".c")]
    argv = [compiler, *_FLAGS, "-isystem", str(headers), "-o", str(library), *units]
    done = capture(run_as(argv), limit_s=_LIMIT_S)
    if done.returncode != 0:
        raise InstallationError(
            f"the functions that loop inside the server could not be compiled with the headers in {headers}",
            detail="\n         ".join(done.stderr.strip().splitlines()[-_LAST_LINES:]),
            hint="check that the headers belong to this server, and that libc6-dev is installed",
        )


def _require_version(title: str, major: int, headers: Path) -> None:
    found = _VERSION_NUMBER.search((headers / "pg_config.h").read_text(errors="replace"))
    number = int(found[1]) // 10000 if found else 0
    if number != major:
        raise InstallationError(
            f"the headers of {title} are of a different version",
            detail=f"those in {headers} are of PostgreSQL {number or 'no known version'}",
            hint=f"apt-get install postgresql-server-dev-{major}, or use the server programs of that version",
        )
