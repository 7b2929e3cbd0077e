"""Turn libpq's message about a failed connection into an error with a hint.

Pure: text in, error out.

libpq reports no SQLSTATE for a connection that was never established; only its message is available. The
server's FATAL message may be translated (``lc_messages``). Unrecognised text becomes the detail unchanged,
without a hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg.errors import DiskFull

from pgdyno.base.errors import (
    ConnectionFailedError,
    ServerCrashedError,
    ServerError,
    StorageError,
    UsageError,
)

_ATTEMPT = re.compile(
    r"connection to server (?P<where>(?:at|on) .+?) failed: (?:FATAL:\s+)?"
    r"(?P<reason>.*?)(?=\n\t|\n-|\nMultiple|$)",
    re.DOTALL,
)
_PASSWORD_FILE = "set PGPASSWORD, or add a line host:port:database:user:password to ~/.pgpass (mode 0600)"  # noqa: S105 — advice
_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05"})  # shut down, crashed, starting up, idle for too long
NO_SPACE = "No space left on device"
"""The text of ENOSPC, in logs of servers and messages of programs."""
_HINTS = (
    (r"password authentication failed", f"check user and password: {_PASSWORD_FILE}"),
    (r"no password supplied", _PASSWORD_FILE),
    (
        r"authentication method requirement .* failed",
        "connect with --dsn, and list the accepted methods: require_auth=scram-sha-256,md5",
    ),
    (
        r"Peer authentication failed",
        "run pgdyno as that operating-system user: sudo -u ROLE pgdyno …; or name another role with user=",
    ),
    (
        r"no pg_hba\.conf entry",
        "allow this host, user and database in the server's pg_hba.conf, then reload it",
    ),
    (r'database ".*" does not exist', "psql --list shows the databases; name one with dbname= or PGDATABASE"),
    (r'role ".*" does not exist', "name an existing role with user= or PGUSER"),
    (
        r"too many clients|too many connections|connection slots are reserved",
        "wait for a connection to end, or connect as a role that may use the reserved ones",
    ),
    (
        r"starting up|not yet accepting connections",
        "try again in a moment; the server's log shows its progress",
    ),
    (r"shutting down", "start the server, or name another one with --dsn"),
    (r"in recovery mode", "a server process crashed; try again in a moment and read the server's log"),
    (r"SSL was required|does not support SSL", "use sslmode=prefer if the network is trusted"),
    (
        r"\.s\.PGSQL.*No such file",
        "is the server running there? pg_lsclusters lists Debian's; name another with --dsn 'host=… port=…'",
    ),
    (
        r"Permission denied",
        "the socket's directory is closed to this user: run pgdyno as the server's user or as root",
    ),
    (
        r"Connection refused",
        "is the server running, and does it listen on that address? see listen_addresses and port",
    ),
    (
        r"timeout expired",
        "is the address right, and does a firewall allow the port? connect_timeout= waits longer",
    ),
    (
        r"due to (?:statement|transaction|idle-session) timeout",
        r"a limit of the role, the database or the server (psql: \drds): try dbname=postgres or another role",
    ),
    (r"resolve host|translate host name", "check the host name, or use its address"),
    (r"definition of service", "services are defined in ~/.pg_service.conf or the file PGSERVICEFILE names"),
)

_NOT_UTF8 = (
    "the database has the encoding SQL_ASCII, and a text in it is not UTF-8: pgdyno cannot read that text"
)
_CALLER = re.compile(r'PL/pgSQL function .+? line \d+|SQL function ".+?"')
_MOST_NAMED = 5
# With a schema, the name is missing for another reason.
_MISSING = re.compile(
    r"(?:function|procedure) [^.(]+\(.*\) does not exist"
    r'|(?:relation|type|collation|text search \w+) "[^."]+" does not exist'
    r"|operator does not exist: .+"
)
QUALIFY_NAMES = (
    "in the original, write the schemas in the function's body, or set its search_path by ALTER FUNCTION"
)
"""The hint for functions that depend on a search path."""


def connection_failed(text: str, target: str) -> ConnectionFailedError:
    """Return the error for libpq's or psycopg's message ``text``.

    ``target`` describes the server without a password; it is used if the message does not name the server.
    """
    attempts = {match["where"]: match["reason"].strip() for match in _ATTEMPT.finditer(text)}
    if not attempts:
        attempts = {f"at {target}": text.removeprefix("connection is bad: ").strip()}
    where = " or ".join(attempts)
    reasons = list(dict.fromkeys(attempts.values()))
    return ConnectionFailedError(
        f"could not connect to the server {where}", detail="; ".join(reasons), hint=_hint(text)
    )


def bad_connection_string(text: str) -> UsageError:
    """Return the error for a connection string that libpq cannot parse.

    Quoted text is removed from the message: libpq quotes the offending part, which is often a password (an
    unquoted blank, a "/" or "@" in a URI).
    """
    safe = re.sub(r'".*"', "…", text.strip(), flags=re.DOTALL)
    return UsageError(
        "invalid connection string",
        detail=safe,
        hint="write --dsn 'host=… port=… user=… dbname=…' or a URI with special characters percent-encoded; "
        "leave the password to PGPASSWORD or ~/.pgpass",
    )


def connection_lost(text: str) -> ConnectionFailedError:
    """Return the error for a connection that was lost while in use."""
    return ConnectionFailedError(
        "lost the connection to the server",
        detail=text.strip(),
        hint="see the server's log for the reason, then try again",
    )


def statement_failed(error: psycopg.Error, *, is_closed: bool) -> ServerError:
    """Return the error for one of pgdyno's statements; ``is_closed``: the connection was lost with it."""
    if is_closed:
        return connection_lost(str(error))
    message = error.diag.message_primary or str(error).strip()
    return ServerError(
        f"a query failed: {message}",
        detail=None if error.sqlstate is None else f"SQLSTATE {error.sqlstate}",
        hint=_NOT_UTF8 if isinstance(error, psycopg.errors.CharacterNotInRepertoire) else None,
    )


def unqualified_name(message: str, context: str, left_out: Sequence[str] = ()) -> str | None:
    """Return a sentence on a name that a function does not find in a copy; None for other errors.

    Copies are made with an empty search path, as by pg_dump and pg_restore. They lack ``left_out``.
    """
    caller = _CALLER.search(context)
    if caller is None or _MISSING.fullmatch(message) is None:
        return None
    kinds = ("extension ", "FOREIGN TABLE ") if message.startswith("relation") else ("extension ",)
    lacking = ", ".join([one for one in left_out if one.startswith(kinds)][:_MOST_NAMED])
    why = f"it may be of {lacking}, which the copy lacks; or " if lacking else ""
    return f"{message}: {why}{caller[0]} finds it by the search path, and copies are made with an empty one"


@contextmanager
def server_errors_converted() -> Iterator[None]:
    """Convert errors of pgdyno's statements in the block. Raises: ConnectionFailedError, ServerError."""
    try:
        yield
    except psycopg.Error as error:
        raise statement_failed(error, is_closed=is_lost(error)) from error


@contextmanager
def failures_explained(during: str, last_log_lines: Callable[[], str], if_full: str) -> Iterator[None]:
    """Convert errors of statements on a scratch server; ``if_full`` is the hint for a full disk.

    Raises: StorageError if the disk is full; ServerCrashedError if the connection was lost; ServerError.
    """
    try:
        yield
    except psycopg.Error as error:
        log, text = last_log_lines(), str(error).strip()
        if is_lost(error) and NO_SPACE not in log:
            message = f"the server closed its connection during {during}"
            raise ServerCrashedError(message, detail=f"{text}\n         {log}") from error
        if is_lost(error) or isinstance(error, DiskFull):
            detail = log if is_lost(error) else text
            raise StorageError(f"the disk filled up during {during}", detail=detail, hint=if_full) from error
        raise statement_failed(error, is_closed=False) from error


def is_lost(error: psycopg.Error) -> bool:
    """Whether an error ended its connection."""
    return isinstance(error, psycopg.OperationalError) and error.sqlstate in {None, *_ENDED}


def control_failed(
    error: psycopg.OperationalError, server: str, log: str, *, is_running: bool
) -> ServerError:
    """Return the error for a control connection to a server under load.

    ``server`` is its display name, ``log`` the end of its log, ``is_running`` whether its postmaster runs.
    """
    message = str(error).strip()
    if not is_running:
        return ServerCrashedError(f"{server} is no longer running", detail=log)
    if _ATTEMPT.search(message) or isinstance(error, psycopg.errors.ConnectionTimeout):
        return ConnectionFailedError(f"could not connect to {server}", detail=message, hint=_hint(message))
    if isinstance(error, psycopg.errors.QueryCanceled):
        return ServerError(f"{server} did not respond in time", detail=f"{message}\n         {log}")
    if error.sqlstate is None or error.sqlstate in _ENDED:
        return ServerCrashedError(f"{server} closed its connection", detail=log)
    return ServerError(f"{server} rejected one of pgdyno's queries", detail=f"{message}\n         {log}")


def _hint(text: str) -> str | None:
    return next((hint for pattern, hint in _HINTS if re.search(pattern, text)), None)
