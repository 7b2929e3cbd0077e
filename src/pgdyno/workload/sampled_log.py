"""The log of a running server: where it is, how to read it, and the settings that make it readable."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import LiteralString

from psycopg import sql

from pgdyno.apply.session.query import Connection, run
from pgdyno.apply.session.target import is_on_this_machine
from pgdyno.base.errors import MeasurementError, PrivilegeError, RefusedError, ServerError
from pgdyno.model.plans.journal import Target
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.server import Server, SettingOverride
from pgdyno.workload.capture.logs.format import TEXT

_CSV = "csvlog"
_STRUCTURED = (_CSV, "jsonlog")
_PREFIX = "%m [%p] %q%u@%d app=%a "
_ESCAPES = re.compile(r"%-?\d*(.)")
_NEEDED = frozenset("da")  # other databases and pgdyno's own sessions are left out by these
_SESSIONS = frozenset("pc")
_TIMES = frozenset("mn")  # in milliseconds
_VALUE_BYTES = 1024  # arbitrary: longer values are seldom keys
_SLOW = ("log_min_duration_statement", "log_min_duration_sample")
_OFF = "-1"
_PIECE_BYTES = 4 << 20  # arbitrary
_CURRENT: LiteralString = "SELECT pg_catalog.pg_current_logfile(%s::pg_catalog.text)"
_ANY: LiteralString = "SELECT pg_catalog.pg_current_logfile()"
_FILES: LiteralString = "SELECT name, size FROM pg_catalog.pg_ls_logdir()"
_SETTINGS: LiteralString = """
SELECT name, setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.~) '^log_' ORDER BY name
"""
_SIZE: LiteralString = "SELECT size FROM pg_catalog.pg_stat_file(%s::pg_catalog.text, true)"
_READ: LiteralString = """
SELECT pg_catalog.pg_read_binary_file(
    %s::pg_catalog.text, %s::pg_catalog.int8, %s::pg_catalog.int8, true)
"""
_PID: LiteralString = "SELECT pg_catalog.pg_backend_pid()"
_COLLECTOR = "logging_collector = on (takes a restart) writes files that pgdyno finds"
_SINCE = 120_000  # first version with log_transaction_sample_rate
_OF_ALL = {
    "log_statement": frozenset({"ddl", "mod", "all"}),
    "log_min_duration_statement": frozenset({"0"}),
    "log_min_duration_sample": frozenset({"0"}),
}
"""Values with which statements are logged that are in no sampled transaction."""
_HARMLESS = frozenset({"-1", "none"})
_ALL_LOGGED = frozenset({("log_statement", "all"), ("log_min_duration_statement", "0")})
_RATE = "log_transaction_sample_rate"
_SUFFIXES = {"csvlog": ".csv", "jsonlog": ".json"}
_NOT_TEXT = (*_SUFFIXES.values(), ".gz", ".xz", ".bz2", ".zst", ".lz4")


@dataclass(frozen=True)
class LogPlace:
    """A log: its format in log_destination, and a file of it, or of its directory.

    ``is_collected``: the log collector writes it, and may begin new files. ``line_prefix`` is that of a text
    log; None for other formats.
    """

    log: str
    path: str
    is_collected: bool
    line_prefix: str | None = None

    def has(self, path: str) -> bool:
        """Whether a file in the directory of logs is of this log's format."""
        if not self.is_collected:
            return path == self.path
        return path.endswith(_SUFFIXES[self.log]) if self.log in _SUFFIXES else not path.endswith(_NOT_TEXT)


@dataclass(frozen=True)
class LogFiles:
    """Files of a server's log, read by the server itself, or on this machine below ``directory``."""

    connection: Connection
    directory: Path | None = None
    is_by_server: bool = True

    @checked_results()
    def current(self, place: LogPlace) -> str | None:
        """Return the path of the file that is now written; None if none is."""
        if not place.is_collected:
            return place.path
        [[path]] = run(self.connection, _CURRENT, (place.log,))
        return None if path is None else str(path)

    @checked_results()
    def size(self, path: str) -> int:
        """Return a file's size in bytes; 0 if it is gone. Raises: ServerError."""
        if self.is_by_server:
            [[size_bytes]] = run(self.connection, _SIZE, (path,))
            return 0 if size_bytes is None else int(size_bytes)
        try:
            return self._here(path).stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ServerError(f'could not read "{path}"', detail=error.strerror) from error

    @checked_results()
    def sizes(self, place: LogPlace) -> dict[str, int]:
        """Return the sizes of all files in the directory of the log, of all formats; or of its only file.

        Raises: ServerError, PrivilegeError.
        """
        if not place.is_collected:
            return {place.path: self.size(place.path)}
        directory, slash, _ = place.path.rpartition("/")
        return {f"{directory}{slash}{name}": int(size) for name, size in run(self.connection, _FILES)}

    @checked_results()
    def settings(self) -> dict[str, str]:
        """Return the log's settings that are in force. Raises: ServerError."""
        return {str(name): str(setting) for name, setting in run(self.connection, _SETTINGS)}

    def read(self, path: str, begin: int, end: int) -> Iterator[bytes]:
        """Yield a part of a file. Raises: ServerError; MeasurementError if the file has become shorter."""
        while begin < end:
            length = min(_PIECE_BYTES, end - begin)
            piece = self.piece(path, begin, length)
            if len(piece) < length:
                raise truncated(path)
            yield piece
            begin += len(piece)

    def free_share(self, path: str) -> float | None:
        """Return the free share of a file's file system; None if it is on another machine, or hidden."""
        if self.directory is None:
            return None
        try:
            found = os.statvfs(self._here(path))
        except OSError:
            return None
        return found.f_bavail / found.f_blocks if found.f_blocks else None

    def able_to_read(self, path: str, target: Target) -> LogFiles:
        """Return a reader of ``path`` and the files next to it. Raises: RefusedError if none can read it."""
        directory = Path(target.data_directory or "/") if is_on_this_machine(target) else None
        ways = [replace(self, directory=directory)]
        if directory is not None and os.geteuid() != 0:  # root opens no file that a server names
            ways.append(replace(self, directory=directory, is_by_server=False))
        reasons = []
        for one in ways:
            try:
                one.size(path)
                one.piece(path, 0, 1)
            except ServerError as error:
                reasons.append(f"{'the server' if one.is_by_server else 'this machine'}: {error.message}")
            else:
                return one
        raise RefusedError(
            f'could not read the server\'s log, "{path}"',
            detail="; ".join(reasons),
            hint="name a superuser's connection by --admin-dsn, or run pgdyno on the server's machine as a "
            "user that may read the file",
        )

    @checked_results()
    def standard_error(self) -> str | None:
        """Return the file that the server's standard error goes to; None if it is unknown, or no file."""
        [[pid]] = run(self.connection, _PID)
        try:
            path = Path(f"/proc/{int(pid)}/fd/2").readlink()
        except OSError:
            return None
        return str(path) if path.is_absolute() and path.is_file() else None

    @checked_results()
    def piece(self, path: str, begin: int, length: int) -> bytes:
        """Return a part of a file, at most up to its end. Raises: ServerError."""
        if self.is_by_server:
            [[piece]] = run(self.connection, _READ, (path, begin, length))
            return bytes(piece or b"")
        try:
            if not self._here(path).is_file():
                raise ServerError(f'could not read "{path}"', detail="no such file")
            with self._here(path).open("rb") as file:
                file.seek(begin)
                return file.read(length)
        except OSError as error:
            raise ServerError(f'could not read "{path}"', detail=error.strerror) from error

    def _here(self, path: str) -> Path:
        return (self.directory or Path("/")) / path


def truncated(path: str) -> MeasurementError:
    """Return the error for a file that lost entries before they were read."""
    return MeasurementError(
        "the server's log was truncated during the capture",
        detail=f'"{path}" has become shorter, or is gone',
        hint="pause log rotation, or capture at another time",
    )


def check_unlogged(server: Server) -> None:
    """Refuse a server with a log in which sampled transactions could not be distinguished or read.

    Raises: RefusedError.
    """
    if server.version_num < _SINCE:
        raise RefusedError(
            f"PostgreSQL {server.version} cannot log a sample of transactions",
            detail=f"{_RATE} exists since PostgreSQL 12",
            hint="log all statements for some minutes, and use --log",
        )
    settings = server.settings
    _check_statements(server)
    language, least = settings["lc_messages"].setting, settings["log_min_messages"].setting
    if language not in {"", "C", "POSIX"} and not language.startswith(("C.", "en", "English")):
        raise RefusedError(
            f"the server's messages are not in English: lc_messages = '{language}'",
            hint="ALTER SYSTEM SET lc_messages = 'C', and reload",
        )
    if least in {"fatal", "panic"}:
        raise RefusedError(
            f"log_min_messages = {least} keeps statements out of the log",
            hint="ALTER SYSTEM SET log_min_messages = 'log', and reload",
        )


def _check_statements(server: Server) -> None:
    """Refuse a server that logs statements for another reason, or some of a rate of their own."""
    settings = server.settings
    own = [name for name in _OF_ALL if name in settings and settings[name].setting in _OF_ALL[name]]
    if float(settings[_RATE].setting) > 0:
        own.append(_RATE)
    overrides = [
        one
        for one in server.overrides.or_else(())
        if one.name == _RATE or (one.name in _OF_ALL and one.value not in _HARMLESS)
    ]
    if not own and not overrides:
        return
    undoing = [f"ALTER SYSTEM SET {name} = {_off_value(name)}, and reload" for name in own]
    hint = f"{'; '.join([*undoing, *map(_reset, overrides)])}; or capture at another time"
    if any((name, settings[name].setting) in _ALL_LOGGED for name in own):
        hint = "all statements are logged, so use that log: --log FILE"
    is_rate = not own and all(one.name == _RATE for one in overrides)
    raise RefusedError(
        f"roles or databases have a {_RATE} of their own"
        if is_rate
        else "the server logs statements already, which could not be distinguished from sampled transactions",
        detail="; ".join(
            [
                *(f"{name} = {settings[name].display()}" for name in own),
                *(
                    f"{one.name} = {one.value} "
                    f"({', '.join(filter(None, (one.role, one.database))) or 'all roles'})"
                    for one in overrides
                ),
            ]
        ),
        hint=hint,
    )


def _off_value(name: str) -> str:
    return {"log_statement": "none", _RATE: "0"}.get(name, _OFF)


def _reset(override: SettingOverride) -> str:
    """Return the statement that removes a setting of a role or database."""
    role, database = (
        None if name is None else sql.Identifier(name).as_string()
        for name in (override.role, override.database)
    )
    if role is None and database is not None:
        return f"ALTER DATABASE {database} RESET {override.name}"
    place = "" if database is None else f" IN DATABASE {database}"
    return f"ALTER ROLE {role or 'ALL'}{place} RESET {override.name}"


def place_of_log(settings: Mapping[str, Guc], files: LogFiles, target: Target) -> LogPlace:
    """Return the log that will have the sample.

    Raises: RefusedError if it is in no file that pgdyno can find.
    """
    found = settings["log_destination"].setting
    destinations = [one.strip().lower() for one in found.split(",")]
    prefix = settings["log_line_prefix"].setting
    is_text = TEXT in destinations
    is_readable = is_text and _is_readable(prefix, settings["log_error_verbosity"].setting)
    if not is_text and not set(destinations) & set(_STRUCTURED):
        raise RefusedError(
            f"the server does not log to files: log_destination = '{found}'",
            hint=f"add stderr to log_destination, and reload; {_COLLECTOR}",
        )
    if settings["logging_collector"].setting == "on":
        path = _collected(files)
        log = next((one for one in _STRUCTURED if one in destinations), TEXT if is_readable else _CSV)
        return LogPlace(log, path, is_collected=True, line_prefix=prefix if log == TEXT else None)
    path_of_text = files.standard_error() if is_on_this_machine(target) and is_text else None
    if path_of_text is None:
        raise RefusedError(
            "the place of the server's log is unknown: logging_collector is off",
            detail="the server's standard error is no file that this user can see",
            hint=f"run pgdyno on the server's machine as its user or root; or {_COLLECTOR}",
        )
    return LogPlace(TEXT, path_of_text, is_collected=False, line_prefix=prefix if is_readable else _PREFIX)


def settings_for(settings: Mapping[str, Guc], place: LogPlace, share: float) -> dict[str, str]:
    """Return the settings to change to log this share of transactions in a readable form."""
    wanted = {_RATE: f"{share:.6g}"}
    for name in _SLOW:
        if name in settings and settings[name].setting != _OFF:
            wanted[name] = _OFF  # slow statements of other transactions would be logged as well
    length = settings.get("log_parameter_max_length")  # since PostgreSQL 13
    if length is not None and 0 <= int(length.setting) < _VALUE_BYTES:
        wanted[length.name] = str(_VALUE_BYTES)
    destination = settings["log_destination"].setting
    if place.log not in destination.lower():
        wanted["log_destination"] = f"{destination},{place.log}"
    if place.line_prefix is not None and place.line_prefix != settings["log_line_prefix"].setting:
        wanted["log_line_prefix"] = place.line_prefix
    if place.log == TEXT and settings["log_error_verbosity"].setting == "terse":
        wanted["log_error_verbosity"] = "default"
    return wanted


@checked_results()
def _collected(files: LogFiles) -> str:
    """Return the path of a file that the log collector writes. Raises: RefusedError."""
    try:
        [[path]] = run(files.connection, _ANY)
    except PrivilegeError as error:
        raise RefusedError(
            "the place of the server's log is hidden from the role",
            detail=error.message,
            hint="GRANT pg_monitor TO the role, or name a superuser's connection by --admin-dsn",
        ) from error
    if path is None:
        raise RefusedError("the server does not write a log file at present", hint="see its log_destination")
    return str(path)


def _is_readable(prefix: str, verbosity: str) -> bool:
    """Whether lines with a log_line_prefix identify sessions, databases, programs and milliseconds."""
    named = set(_ESCAPES.findall(prefix.replace("%%", "")))
    has_all = named >= _NEEDED and bool(named & _SESSIONS) and bool(named & _TIMES)
    return has_all and verbosity != "terse"
