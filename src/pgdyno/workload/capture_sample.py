"""Capture a workload from a share of transactions that the server logs for that time.

Order: all refusals → receipts and settings of the log, as by ``apply`` → the sessions are watched while the
server logs → the original settings → the log is read. After a kill, ``pgdyno revert`` restores the settings.

Two roles: one that may change settings and read the log, and one without such rights; its connection
watches sessions and parses statements.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import LiteralString

from pgdyno.apply.apply import Checked, Opened, open_for_apply
from pgdyno.apply.revert import RevertRequest, give_back
from pgdyno.apply.runs.changes import new_apply_id
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.ownership import check_managers, check_settings
from pgdyno.apply.session.query import Connection, run
from pgdyno.apply.session.target import bound_to, read_target
from pgdyno.base import numbers
from pgdyno.base.errors import (
    ConnectionFailedError,
    MeasurementError,
    PrivilegeError,
    RefusedError,
    ServerError,
    UsageError,
)
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.plans.plan import SETTING, Change, Effect
from pgdyno.postgres.connection.connection import Connection as ReadConnection
from pgdyno.postgres.connection.connection import connect, dsn_of
from pgdyno.postgres.connection.privileges import read_privileges
from pgdyno.postgres.sampling.sessions import Sessions, watch_sessions
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture_log import LogCaptureRequest, capture_log
from pgdyno.workload.capture_server import with_sampled_pauses
from pgdyno.workload.sampled_log import (
    LogFiles,
    LogPlace,
    check_unlogged,
    place_of_log,
    settings_for,
    truncated,
)
from pgdyno.workload.schema import require_parsing

_LEVER = "workload_capture"  # in receipts
_RATE = "log_transaction_sample_rate"
_RUN: LiteralString = (
    "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_postmaster_start_time()::pg_catalog.text"
)
# The log's reader leaves out sessions of this name; the connection string may have another one.
_OWN_NAME: LiteralString = "SELECT pg_catalog.set_config('application_name', 'pgdyno', false)"
_LEAST_FREE = 0.1  # share of the log's file system: arbitrary
_CHECK_EVERY_S = 1.0
_OPENED_WITHIN_S = 10.0  # the log collector opens a new file within milliseconds
_POLL_S = 0.05


@dataclass(frozen=True)
class LogSampleRequest:
    """A database, a name for its workload, the share of transactions to log, and for how many seconds.

    ``is_keeping_values``: the workload contains the parameters' values. ``most_log_bytes``: the capture ends
    when the log has grown by more.
    """

    dsn: str | None
    name: str
    share: float
    seconds: float
    is_keeping_values: bool = False
    most_log_bytes: int = 1 << 30  # arbitrary: more than a sample of some minutes needs


@dataclass
class _Written:
    """The part of the log that is written while transactions are sampled: begin and end in each file.

    ``parts`` are of all files in the directory of the log, of whatever format; ``first`` is the one that was
    written at the beginning.
    """

    files: LogFiles
    place: LogPlace
    share: float
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    first: str = ""
    _settings: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin at the present end of the log. Raises: ServerError if it is not as wanted in time."""
        deadline_s = time.monotonic() + _OPENED_WITHIN_S
        while True:
            self._settings, path = self.files.settings(), self.files.current(self.place)
            is_sampled = math.isclose(float(self._settings[_RATE]), self.share, rel_tol=1e-4)
            if path is not None and is_sampled:
                break
            if time.monotonic() > deadline_s:
                raise ServerError(
                    f"the server did not open a {self.place.log} within {_OPENED_WITHIN_S:.0f} s"
                    if path is None
                    else f"{_RATE} = {self.share:.6g} was not in force within {_OPENED_WITHIN_S:.0f} s",
                    hint="the server's own log has the reason",
                )
            time.sleep(_POLL_S)
        self.first = path
        self.parts = {one: (size, size) for one, size in self.files.sizes(self.place).items()}

    def look(self) -> int:
        """Extend the parts to the present end of the log, and return their size in bytes.

        Raises: MeasurementError if a file lost entries, or the log's settings are others than at the
        beginning.
        """
        sizes = self.files.sizes(self.place)
        for path, (begin, end) in self.parts.items():
            size_bytes = sizes.pop(path, 0)
            if size_bytes >= end:
                self.parts[path] = begin, size_bytes
            elif self.place.has(path) and (begin < end or path == self.first):
                raise truncated(path)
            else:  # a file of earlier days, emptied by log_truncate_on_rotation
                self.parts[path] = 0, size_bytes
        self.parts.update((path, (0, size_bytes)) for path, size_bytes in sizes.items())
        self._check_settings()
        return sum(end - begin for begin, end in self.parts.values())

    def _check_settings(self) -> None:
        now = self.files.settings()
        names = sorted(one for one in self._settings | now if self._settings.get(one) != now.get(one))
        if names:
            raise MeasurementError(
                "the settings of the log were changed during the capture",
                detail="; ".join(
                    f"{one} is {now.get(one)}, and was {self._settings.get(one)}" for one in names
                ),
                hint="capture again, and leave these settings alone until it has ended",
            )

    def check(self, request: LogSampleRequest, passed_s: float) -> None:
        """Raise MeasurementError if the log grows too much, or the disk fills up."""
        size_bytes = self.look()
        free = self.files.free_share(self.place.path)
        if size_bytes <= request.most_log_bytes and (free is None or free >= _LEAST_FREE):
            return
        left = "" if free is None else f"; {numbers.share(free)} of its file system is free"
        raise MeasurementError(
            "the server's log grows too fast",
            detail=f"it grew by {numbers.size(size_bytes)} within {numbers.duration(passed_s)}{left}; "
            "its settings are restored",
            hint=f"log a smaller share, --log-sample {request.share * 10:.2g}%, or less long, by --for",
        )

    def copy(self, directory: Path) -> tuple[tuple[Path, ...], int]:
        """Write the parts to files, and return these with their number of lines."""
        copies, lines = [], 0
        for number, (path, (begin, end)) in enumerate(self.parts.items()):
            if begin < end and self.place.has(path):
                copies.append(directory / f"{number}-{Path(path).name}")
                with copies[-1].open("wb") as file:
                    for piece in self.files.read(path, begin, end):
                        lines += piece.count(b"\n")
                        file.write(piece)
        return tuple(copies), lines


def capture_sample(access: ServerAccess, request: LogSampleRequest, progress: Progress) -> CapturedWorkload:
    """Return a database's workload from a sample of the transactions of the next seconds.

    ``access`` is that of a role which may change the settings of the log and read it.
    Raises: UsageError, RefusedError, PrivilegeError, ConnectionFailedError before any change; any other error
    after the settings were restored; StillChangedError if that was not possible.
    """
    with closing(connect(request.dsn)) as connection:
        require_parsing(connection)
        if not read_privileges(connection).can_read_stats:
            raise PrivilegeError(
                "the role may not see other roles' sessions", hint="GRANT pg_read_all_stats TO the role"
            )
        request = replace(request, dsn=dsn_of(connection, request.dsn))
        with closing(_admin(access, connection)) as admin:
            access = replace(access, connect=bound_to(read_target(admin), access.connect))
            with _sampling(access, LogFiles(admin), request, progress) as written:
                watch = _Watch(written, request, progress)
                sessions = watch_sessions(connection, request.seconds, watch.report)
                size_bytes, seconds = written.look(), time.monotonic() - watch.began_s
            workload, lines = _read(request, written, progress)
    cost = (
        f"the server's log grew by {numbers.size(size_bytes)} in {numbers.duration(seconds)}, pgdyno's own "
        f"statements and other messages included; the part that was read has {lines} lines"
    )
    return _scaled(replace(workload, seconds=seconds), request.share, sessions, cost)


def _admin(access: ServerAccess, connection: ReadConnection) -> Connection:
    """Connect as the role that changes settings to the very server of ``connection``.

    One of the two may come over a socket and see more than the other: so they are compared by what
    every role sees. Raises: ConnectionFailedError for another server.
    """
    admin = bound_to(read_target(connection), access.connect, by_address=False)()
    found, other = (connection.execute(_RUN).fetchall(), run(admin, _RUN))
    if found != other:
        address = read_target(admin).address
        admin.close()
        raise ConnectionFailedError(
            f"a different server answers at {address}",
            detail="it was started at another time, or is the standby of the same primary",
            hint="name the same server by --dsn and --admin-dsn",
        )
    run(admin, _OWN_NAME)
    return admin


def _read(request: LogSampleRequest, written: _Written, progress: Progress) -> tuple[CapturedWorkload, int]:
    """Return the workload of the sampled transactions, and the number of lines in the log."""
    with TemporaryDirectory(prefix="pgdyno-log-") as directory:
        files, lines = written.copy(Path(directory))
        if not files:
            raise UsageError(
                "the server logged nothing",
                detail=f"{numbers.share(request.share)} of its transactions were to be logged",
                hint="log a larger share, or for longer: --log-sample 10% --for 10m",
            )
        prefix, keeps = written.place.line_prefix, request.is_keeping_values
        from_log = LogCaptureRequest(request.dsn, request.name, files, keeps, prefix, is_sample=True)
        return capture_log(from_log, progress), lines


@dataclass
class _Watch:
    """Reports the progress, and looks after the log about once a second."""

    written: _Written
    request: LogSampleRequest
    progress: Progress
    began_s: float = field(default_factory=time.monotonic)
    _looked_s: float = 0.0

    def report(self, passed_s: float) -> None:
        """Report the progress. Raises: MeasurementError if the log grows too much."""
        self.progress.advance(passed_s, self.request.seconds)
        if passed_s - self._looked_s >= _CHECK_EVERY_S:
            self.written.check(self.request, passed_s)
            self._looked_s = passed_s


@contextmanager
def _sampling(
    access: ServerAccess, files: LogFiles, request: LogSampleRequest, progress: Progress
) -> Iterator[_Written]:
    """Let the server log a share of transactions within the block; the settings are restored at its end."""
    apply_id = new_apply_id()
    with ExitStack() as stack:
        with open_for_apply(access, apply_id) as run:
            written, checked = _checked(run.opened, files, request.share)
            progress.step(f"setting {', '.join(one.change.key for one in checked.prepared)} for this time")
            stack.callback(give_back, access, RevertRequest(apply_id=apply_id))
            run.carry_out(checked.prepared)
        written.begin()
        progress.step(f"logging {numbers.share(request.share)} of all transactions")
        yield written


def _checked(opened: Opened, files: LogFiles, share: float) -> tuple[_Written, Checked]:
    """Run all checks, and read the original values. Changes nothing."""
    server = opened.server
    _check_no_other_capture(opened)
    check_managers(server.managers, opened.files.patroni_file() if opened.files else None)
    check_unlogged(server)
    place = place_of_log(server.settings, files, opened.session.target)
    files = files.able_to_read(place.path, opened.session.target)
    free = files.free_share(place.path)
    if free is not None and free < _LEAST_FREE:
        raise RefusedError(
            "the file system of the server's log is almost full",
            detail=f"{numbers.share(free)} of it is free; {place.path}",
            hint=f"free at least {numbers.share(_LEAST_FREE)} of it first",
        )
    wanted = settings_for(server.settings, place, share)
    check_settings(server.settings, wanted)
    changes = (
        Change(_LEVER, SETTING, name, server.settings[name].display(), value, Effect.RELOAD)
        for name, value in wanted.items()
    )
    try:
        if place.path not in files.sizes(place):
            raise RefusedError(
                "the server's log is not in its log_directory",
                detail=f'pg_ls_logdir() does not list "{place.path}"',
                hint="set a log_filename without a directory",
            )
        checked = opened.check(changes)
    except PrivilegeError as error:
        raise PrivilegeError(
            error.message,
            detail=error.detail,
            hint="name a superuser's connection by --admin-dsn, or (since PostgreSQL 15) grant these and "
            "pg_monitor to the role",
        ) from error
    if checked.unknown_edits is not None:
        raise PrivilegeError(
            "the role may not see whether a reload would put edits by others into effect",
            detail=checked.unknown_edits,
            hint="GRANT SELECT ON pg_file_settings, and EXECUTE ON FUNCTION pg_show_all_file_settings(), TO "
            "the role; or name a superuser's connection by --admin-dsn",
        )
    return _Written(files, place, share), checked


def _check_no_other_capture(opened: Opened) -> None:
    """Refuse a server on which another capture runs, or was killed."""
    target = opened.session.target
    for receipt in opened.contents.open:
        if receipt.change.lever == _LEVER and receipt.target.is_same_as(target):
            raise RefusedError(
                f"another capture ({receipt.apply_id}) is running, or was killed",
                detail=f"{receipt.key} is still {receipt.change.value}",
                hint=f"wait until it has ended; if it was killed: {opened.access.revert_command}",
            )


def _scaled(workload: CapturedWorkload, share: float, sessions: Sessions, cost: str) -> CapturedWorkload:
    """Return the workload of all transactions, from that of a share of them."""
    many = round(sum(one.weight for one in workload.transactions))
    times = partial(_times, factor=1 / share)
    note = (
        f"its counts are those of {many} sampled transactions, {numbers.share(share)} of all, multiplied by "
        f"{1 / share:.6g}: rare kinds may be missing; {cost}"
    )
    scaled = replace(
        workload,
        clients=max(1, round(sessions.mean_in_transactions)),
        sessions=max(1, round(sessions.connected.mean(sessions.looks))),
        statements=tuple(replace(one, seen=times(one.seen)) for one in workload.statements),
        transactions=tuple(replace(one, weight=one.weight / share) for one in workload.transactions),
        omitted=tuple(replace(one, seen=times(one.seen)) for one in workload.omitted),
        pauses_s=(),
        notes=(note, *workload.notes),
    )
    return with_sampled_pauses(scaled, sessions)


def _times(seen: Seen, factor: float) -> Seen:
    return replace(seen, calls=round(seen.calls * factor), time_ms=seen.time_ms * factor)
