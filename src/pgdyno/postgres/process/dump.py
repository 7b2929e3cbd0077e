"""Dump a database with pg_dump, at a limited rate, and restore it on a scratch server.

A dump contains untrusted code: functions that run during the restore. So an unprivileged role restores it,
and objects that reach beyond the database are omitted: foreign servers and their passwords, subscriptions,
publications, event triggers, and extensions that are not known to be self-contained.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pgdyno.base.errors import ServerError, StorageError, UsageError
from pgdyno.host.child_command import child_command
from pgdyno.postgres.connection.connection import without_password
from pgdyno.postgres.connection.connection_errors import QUALIFY_NAMES, unqualified_name
from pgdyno.postgres.process.instance import Instance

COPY_ROLE = "pgdyno_copy"
"""The role that owns the copy and issues the load on it. It has no other privileges."""

_OPTIONS = (
    "--format=custom", "--no-owner", "--no-privileges", "--no-publications", "--no-subscriptions",
    "--no-security-labels", "--no-tablespaces", "--no-password", "--lock-wait-timeout=10s",
)  # fmt: skip
_CHUNK_BYTES = 1 << 18
_LIST_LIMIT_S = 600.0  # arbitrary; it takes a second for a large database
_SHOWN_BYTES = 2000
_ENTRY = re.compile(r"^\d+; \d+ \d+ (?P<kind>[A-Z][A-Z ]*[A-Z]) (?P<rest>.*)$")
_FAILED = re.compile(r"^pg_restore: from TOC entry \d+; \d+ \d+ (?P<entry>.*) \S+$", re.MULTILINE)
_REASON = re.compile(r"^pg_restore: error: (?P<reason>.*)$", re.MULTILINE)
_ERROR = re.compile(
    r"^pg_restore: error: (?P<action>.*): ERROR:  (?P<message>.*)\n(?P<rest>(?:(?!pg_restore: ).*\n)*)",
    re.MULTILINE,
)
_COMMAND = re.compile(r"^Command was: (?P<command>.*)", re.MULTILINE)
# pg_restore reports no SQLSTATE. Errors caused by rows: violated constraints, values that an index cannot
# store, and objects that depend on an index or a key omitted for one of these reasons.
_BY_ROWS = re.compile(
    r"could not create (?:unique index|exclusion constraint)|violates foreign key constraint"
    r"|contains null values|is violated by some row|empty WITHOUT OVERLAPS value found"
    r"|invalid input syntax for|division by zero|out of range|index row (?:size|requires)"
    r"|does not exist|there is no (?:unique constraint matching|primary key for)"
)
_DATABASE = re.compile(
    r"""^CREATE DATABASE (?:"(?:[^"]|"")+"|\w+) WITH """
    r"""(?P<properties>(?:[A-Z_]+ = (?:'(?:[^']|'')*'|\w+) ?)+);$""",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"(?P<name>[A-Z_]+) = (?:'(?P<text>(?:[^']|'')*)'|(?P<word>\w+))")
_LOCALE: tuple[LiteralString, ...] = (
    "ENCODING", "LOCALE_PROVIDER", "LOCALE", "LC_COLLATE", "LC_CTYPE", "ICU_LOCALE", "BUILTIN_LOCALE",
    "ICU_RULES",
)  # fmt: skip
_NOT_NAMES = {"LOCALE_PROVIDER", "ICU_RULES"}
_MISSING_LOCALE = re.compile(r'invalid (?:LC_COLLATE |LC_CTYPE )?locale name: "(?P<name>.*)"')
_PROVIDERS_SINCE, _RULES_SINCE, _BUILTIN_SINCE = 15, 16, 17
_OUTSIDE = (
    "EVENT TRIGGER", "FOREIGN DATA WRAPPER", "SERVER", "USER MAPPING", "FOREIGN TABLE", "SUBSCRIPTION",
    "PUBLICATION", "SECURITY LABEL", "PROCEDURAL LANGUAGE", "TRANSFORM", "EXTENSION",
)  # fmt: skip
_EXTENSION = re.compile(
    r'^CREATE EXTENSION IF NOT EXISTS (?:"(?P<quoted>[^"]+)"|(?P<plain>\w+)) '
    r'WITH SCHEMA (?P<schema>"(?:[^"]|"")+"|\w+);$',
    re.MULTILINE,
)
_COMMENTED = re.compile(rf" COMMENT \S+ ({'|'.join(_OUTSIDE)}) ")
_EXTENSIONS = frozenset({
    "btree_gin", "btree_gist", "citext", "cube", "dict_int", "dict_xsyn", "earthdistance", "fuzzystrmatch",
    "hstore", "intarray", "isn", "lo", "ltree", "pg_trgm", "pgcrypto", "plpgsql", "postgis", "seg",
    "tablefunc", "tcn", "tsm_system_rows", "tsm_system_time", "unaccent", "uuid-ossp", "vector",
})  # fmt: skip
"""Self-contained extensions: they add types and functions, and access nothing outside the database."""


@dataclass(frozen=True)
class DumpRequest:
    """A database, its pg_dump program, the target file, and the rate limit.

    ``encoding``: the database's own, in which no character is lost; None: that of a new session.
    ``is_schema_only``: without rows. ``snapshot``: the snapshot of another session, which the dump uses.
    """

    dsn: str
    program: Path
    target: Path
    bytes_per_s: float
    encoding: str | None = None
    is_schema_only: bool = False
    snapshot: str | None = None


def dump_database(request: DumpRequest, report: Callable[[int], None]) -> None:
    """Dump a database to a new file of mode 0600; ``report`` gets the number of bytes written so far.

    Raises: UsageError if the file exists, ServerError with pg_dump's message, StorageError for a full disk.
    """
    try:
        descriptor = os.open(request.target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(f'"{request.target}" already exists', hint="--replace replaces it") from error
    except OSError as error:
        raise StorageError(f'could not write "{request.target}"', detail=error.strerror) from error
    with ExitStack() as undo:
        undo.callback(request.target.unlink)
        with os.fdopen(descriptor, "wb") as target:
            _dump(request, target, report)
        undo.pop_all()  # the dump is complete


def _dump(request: DumpRequest, target: IO[bytes], report: Callable[[int], None]) -> None:
    password = conninfo_to_dict(request.dsn).get("password")
    part = ("--schema-only",) if request.is_schema_only else ()
    # A role may have a client_encoding that lacks characters of the database.
    encoding = () if request.encoding is None else (f"--encoding={request.encoding}",)
    snapshot = () if request.snapshot is None else (f"--snapshot={request.snapshot}",)
    argv = [str(request.program), *_OPTIONS, *part, *encoding, *snapshot]
    argv.append(f"--dbname={without_password(request.dsn)}")
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            child_command(os.getpid(), argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **({} if password is None else {"PGPASSWORD": str(password)})},
        )
        with process:
            try:
                _copy(process, target, request.bytes_per_s, report)
            finally:
                process.terminate()  # does nothing after its end
        if process.returncode != 0:
            raise ServerError("could not copy the database", detail=_end_of(errors) or None)


def _copy(
    process: subprocess.Popen[bytes], target: IO[bytes], bytes_per_s: float, report: Callable[[int], None]
) -> None:
    """Copy the output, limited to ``bytes_per_s``. Raises: StorageError."""
    assert process.stdout is not None  # noqa: S101 — it was opened as a pipe
    began_s, done = time.monotonic(), 0
    while chunk := process.stdout.read(_CHUNK_BYTES):
        try:
            target.write(chunk)
        except OSError as error:
            raise StorageError("could not write the copy of the database", detail=error.strerror) from error
        done += len(chunk)
        report(done)
        time.sleep(max(0.0, done / bytes_per_s - (time.monotonic() - began_s)))
    process.wait()


def create_database(server: Instance, database: str, dump: Path) -> None:
    """Create an empty database with the encoding and locale of the dumped one.

    The locale decides how texts sort, which of them match a pattern, and whether an index serves LIKE.
    Raises: ServerError if the server does not have this locale.
    """
    program = server.installation.program("pg_restore")
    restoring = _Restoring(server, program, database, dump)
    done = restoring.run("--create", *restoring.contents(()), "--file=-")
    if done.returncode != 0:
        raise _unreadable(program, dump, done)
    made = _DATABASE.search(done.stdout.decode(errors="replace"))
    if made is None:
        raise ServerError(
            f'"{dump}" does not describe its database', detail="its encoding and its locale are unknown"
        )
    found = {one["name"]: one["text"] or one["word"] for one in _PROPERTY.finditer(made["properties"])}
    wanted = {name: found[name].replace("''", "'") for name in _LOCALE if name in found}
    if server.installation.major < _PROVIDERS_SINCE and wanted.get("LOCALE_PROVIDER") == "libc":
        del wanted["LOCALE_PROVIDER"]
    each = [sql.SQL(name + " {}").format(wanted[name]) for name in _LOCALE if name in wanted]
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 {}")
    with server.connect() as connection:
        try:
            connection.execute(create.format(sql.Identifier(database), sql.SQL(" ").join(each)))
        except psycopg.Error as error:
            message = error.diag.message_primary or str(error)
            raise _without_locale(server.installation.title, wanted, message) from error


def _without_locale(server: str, wanted: Mapping[str, str], message: str) -> ServerError:
    provider = wanted.get("LOCALE_PROVIDER", "libc")
    names = [f"{name} '{text}'" for name, text in wanted.items() if name not in _NOT_NAMES]
    if missing := _MISSING_LOCALE.search(message):
        language = missing["name"].partition("_")[0]
        hint = (
            "install this locale on this machine: dpkg-reconfigure locales (Debian), or "
            f"dnf install glibc-langpack-{language} (Red Hat)"
        )
    elif provider == "icu":
        since = _RULES_SINCE if "ICU_RULES" in wanted else _PROVIDERS_SINCE
        hint = f"this needs PostgreSQL {since} or later, built with ICU as Debian's packages are"
    elif provider == "builtin":
        hint = f"this needs PostgreSQL {_BUILTIN_SINCE} or later"
    else:
        hint = None
    return ServerError(
        f"{server} cannot have a database in the original's locale: {provider}, {', '.join(names)}",
        detail=f"{message}; in another locale, texts sort differently, and other indexes serve LIKE",
        hint=hint,
    )


def restore_dump(server: Instance, database: str, dump: Path) -> tuple[str, ...]:
    """Restore a dump to an empty database of a scratch server; return the omitted objects' names.

    Raises: ServerError with pg_restore's message.
    """
    return _restore(server, database, dump)


def restore_tables(server: Instance, database: str, dump: Path) -> tuple[str, ...]:
    """Restore a dump's pre-data section, as ``restore_dump`` does: no rows, indexes, keys or triggers."""
    return _restore(server, database, dump, "--section=pre-data")


def restore_keys(
    server: Instance, database: str, dump: Path, left_out: Sequence[str] = ()
) -> tuple[str, ...]:
    """Restore a dump's keys, indexes and triggers; return the entries that the rows violate.

    ``left_out`` is the result of ``restore_tables``, for errors.

    Raises: ServerError with pg_restore's message if any failed for another reason.
    """
    restoring, kept = _restoring_keys(server, database, dump, left_out)
    done = restoring.run("--section=post-data", "--verbose", *restoring.contents(kept), *restoring.target())
    errors = done.stderr.decode(errors="replace")
    failed = tuple(
        dict.fromkeys(one["entry"].removesuffix(f" {COPY_ROLE}") for one in _FAILED.finditer(errors))
    )
    are_by_rows = all(_BY_ROWS.search(one["reason"]) for one in _REASON.finditer(errors))
    if done.returncode != 0 and (not failed or not are_by_rows or restoring.unqualified(errors) is not None):
        raise restoring.failure(done)
    return failed


def restore_all_keys(server: Instance, database: str, dump: Path, left_out: Sequence[str]) -> None:
    """Restore a dump's keys, indexes and triggers. Raises: ServerError if rows violate one."""
    restoring, kept = _restoring_keys(server, database, dump, left_out)
    options = "--section=post-data", "--exit-on-error"
    done = restoring.run(*options, *restoring.contents(kept), *restoring.target())
    if done.returncode != 0:
        raise restoring.failure(
            done,
            "could not create all indexes and keys on the sampled rows",
            "if rows of the original violate it, too (a key without its row), repair them there",
        )


def _restoring_keys(
    server: Instance, database: str, dump: Path, left_out: Sequence[str]
) -> tuple[_Restoring, Iterator[str]]:
    program = server.installation.program("pg_restore")
    kept = (line for line, kind in _listed(server, program, dump) if kind and not _is_outside(line, kind))
    return _Restoring(server, program, database, dump, left_out), kept


def _restore(server: Instance, database: str, dump: Path, *options: str) -> tuple[str, ...]:
    """Restore schemas, then extensions, then the rest.

    The superuser creates the extensions before any code of the dump runs.
    """
    program = server.installation.program("pg_restore")
    entries = _listed(server, program, dump)
    with server.connect(database) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(COPY_ROLE)))
        owner = sql.SQL("ALTER DATABASE {} OWNER TO {}")
        connection.execute(owner.format(sql.Identifier(database), sql.Identifier(COPY_ROLE)))
    restoring = _Restoring(server, program, database, dump)
    restoring.restore(line for line, kind in entries if kind == "SCHEMA")
    missing = restoring.make_extensions([line for line, kind in entries if kind == "EXTENSION"])
    rest = (
        line for line, kind in entries if kind is None or not (kind == "SCHEMA" or _is_outside(line, kind))
    )
    outside = {line.split(" ", 3)[3] for line, kind in entries if kind and kind.startswith(_OUTSIDE[:-1])}
    left_out = tuple(sorted(outside | {f"extension {name}" for name in missing}))
    replace(restoring, left_out=left_out).restore(rest, *options)
    return left_out


@dataclass(frozen=True)
class _Restoring:
    """A pg_restore program, a dump and the target database. ``left_out`` are objects that it lacks."""

    server: Instance
    program: str
    database: str
    dump: Path
    left_out: Sequence[str] = ()

    def restore(self, kept: Iterable[str], *options: str) -> None:
        """Restore the ``kept`` entries as the unprivileged role. Raises: ServerError."""
        self._succeed(*options, "--exit-on-error", *self.contents(kept), *self.target())

    def target(self) -> tuple[str, ...]:
        """Return the connection options for the database, as the unprivileged role."""
        place = f"--host={self.server.host}", f"--port={self.server.port}"
        return *place, f"--username={COPY_ROLE}", f"--dbname={self.database}"

    def make_extensions(self, entries: Sequence[str]) -> set[str]:
        """Create the self-contained extensions; return the names of others."""
        text = self._succeed(*self.contents(entries), "--file=-") if entries else ""
        wanted = {(one["quoted"] or one["plain"]): one["schema"] for one in _EXTENSION.finditer(text)}
        with self.server.connect(self.database) as connection:
            rows = connection.execute("SELECT name FROM pg_catalog.pg_available_extensions").fetchall()
            known = _EXTENSIONS & {str(name) for (name,) in rows}
            for name in wanted.keys() & known:
                make = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA {} CASCADE")
                schema = wanted[name].strip('"').replace('""', '"')
                connection.execute(make.format(sql.Identifier(name), sql.Identifier(schema)))
        return set(wanted) - known

    def contents(self, kept: Iterable[str]) -> tuple[str, ...]:
        """Write a list file with the ``kept`` entries, and return the options that use it."""
        contents = self.server.data_directory.with_name("dump.list")
        contents.write_text("".join(f"{line}\n" for line in kept), errors="surrogateescape")
        contents.chmod(0o644)
        return "--no-owner", "--no-privileges", f"--use-list={contents}"

    def run(self, *options: str) -> subprocess.CompletedProcess[bytes]:
        """Run pg_restore as the servers' account, with untranslated messages."""
        account = self.server.account
        with self.dump.open("rb") as source:
            return account.run([self.program, *options], stdin=source, environment={"LC_ALL": "C"})

    def failure(
        self,
        done: subprocess.CompletedProcess[bytes],
        message: str | None = None,
        hint: str = "an unprivileged role restores it: pgdyno runs no code from a dump as a superuser",
    ) -> ServerError:
        """Return the error for a failed run."""
        text = done.stderr.decode(errors="replace")
        lacks = "".join(f"\nthe copy lacks {one}" for one in self.left_out)
        return self.unqualified(text) or ServerError(
            message or f'could not restore "{self.dump}"',
            detail=f"{text.strip()[-_SHOWN_BYTES:]}{lacks}",
            hint=hint,
        )

    def unqualified(self, output: str) -> ServerError | None:
        """Return the error for a function that fails without a search path; None for other output."""
        for one in _ERROR.finditer(f"{output}\n"):
            if detail := unqualified_name(one["message"], one["rest"], self.left_out):
                command = _COMMAND.search(one["rest"])
                action = one["action"] if command is None else command["command"]
                message = f'could not restore "{self.dump}": {action}'
                return ServerError(message, detail=detail, hint=QUALIFY_NAMES)
        return None

    def _succeed(self, *options: str) -> str:
        done = self.run(*options)
        if done.returncode != 0:
            raise self.failure(done)
        return done.stdout.decode(errors="surrogateescape")


def _listed(server: Instance, program: str, dump: Path) -> list[tuple[str, str | None]]:
    """Return the lines of a dump's table of contents with their object types; None for other lines."""
    with dump.open("rb") as source:
        done = server.account.run([program, "--list"], limit_s=_LIST_LIMIT_S, stdin=source)
    if done.returncode != 0:
        raise _unreadable(program, dump, done)
    lines = done.stdout.decode(errors="surrogateescape").splitlines()
    return [(line, found["kind"] if (found := _ENTRY.match(line)) else None) for line in lines]


def _unreadable(program: str, dump: Path, done: subprocess.CompletedProcess[bytes]) -> ServerError:
    return ServerError(
        f'"{dump}" cannot be read by {program}',
        detail=done.stderr.decode(errors="replace").strip()[-_SHOWN_BYTES:],
        hint="use a server of the same major version as the pg_dump that wrote it, or a later one; or "
        "install the client programs of the original's version (postgresql-client-NN), and copy again",
    )


def _is_outside(line: str, kind: str) -> bool:
    """Whether an object, or a comment's object, is omitted because it reaches beyond the database."""
    return kind.startswith(_OUTSIDE) or (kind == "COMMENT" and _COMMENTED.search(line) is not None)


def _end_of(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _SHOWN_BYTES))
    return file.read().decode(errors="replace").strip()
