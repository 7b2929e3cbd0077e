"""Capture a workload from a server's logs; the server itself has the schema, and samples of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.catalogued_tables import Column, ColumnValues
from pgdyno.postgres.connection.connection import Connection, connect, dsn_of
from pgdyno.postgres.inspection.columns import read_column_values, read_identity
from pgdyno.postgres.sampling.log_files import LogSettings, read_files, read_head, read_log_settings
from pgdyno.postgres.statement_counts import Ended, NewCounts
from pgdyno.workload.capture.logs.format import TEXT, LogFormat, recognise
from pgdyno.workload.capture.logs.line_prefix import beginning, foreign_severity
from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values
from pgdyno.workload.capture.pauses import with_pauses
from pgdyno.workload.capture.positions import with_positions
from pgdyno.workload.capture.protocol import protocol_of_calls
from pgdyno.workload.capture.ties import Inferred
from pgdyno.workload.capture.workload import LogKnowledge, Observation, assemble
from pgdyno.workload.capture_server import why_omitted
from pgdyno.workload.schema import Schema, read_schema, require_parsing, with_casts

_MOST_DATABASES = 5  # in an error
_MOST_NAMED = 5  # columns in a note
_IN_ENGLISH = "messages must be in English: set lc_messages = 'C', and log again"


@dataclass(frozen=True)
class LogCaptureRequest:
    """A server, a name for its workload, and its logs in any order.

    ``is_keeping_values``: the workload contains the parameters' values. ``line_prefix`` is the
    log_line_prefix of the logs, None for the server's current one. ``is_sample``: they have a share of the
    transactions, each whole.
    """

    dsn: str | None
    name: str
    files: Sequence[Path]
    is_keeping_values: bool
    line_prefix: str | None = None
    is_sample: bool = False


def capture_log(request: LogCaptureRequest, progress: Progress) -> CapturedWorkload:
    """Return a database's workload according to logs. Nothing is written to the server.

    Raises: ConnectionFailedError, ServerError; UsageError for files that are not logs, or have no statements.
    """
    with closing(connect(request.dsn)) as connection:
        require_parsing(connection)
        settings = read_log_settings(connection)
        _, database = read_identity(connection)
        dsn = dsn_of(connection, request.dsn)
    log, files = _in_order(request, settings)
    progress.step(f"reading {log.name}: {', '.join(path.name for path in files)}")
    load = LoggedLoad(database, Values(request.is_keeping_values), is_sample=request.is_sample)
    for lines in read_files(files, progress.advance):
        load.read(log.entries(lines))
    load.finish()
    if not load.calls:
        is_text = log.name == TEXT
        unread = _first_unread(log, files, progress) if is_text and load.unread else None
        error = _no_statement(load, unread, settings.language, is_text=is_text)
        raise _with_larger_sample(error) if request.is_sample else error
    with closing(connect(dsn)) as connection:  # a new session, since reading takes long
        progress.step(f"analysing {len(load.texts.sql)} statements")
        schema = read_schema(connection, load.texts.sql)
        partial = {} if request.is_sample else settings.partial
        observed = _observation(request.name, load, schema, replace(settings, partial=partial))
        observed = with_casts(connection, observed, load.texts.types)
        workload = assemble(observed)
        if not workload.transactions:
            raise UsageError("nothing in the log can be replayed", detail=why_omitted(workload))
        workload = _favouring(connection, workload, observed.texts, load.values, schema.columns)
    return with_pauses(workload, load.pauses_s) if load.pauses_s else workload


def _favouring(
    connection: Connection,
    workload: CapturedWorkload,
    texts: Mapping[int, str],
    values: Values,
    columns: Sequence[Column],
) -> CapturedWorkload:
    """Return a workload with parameters that favour the values that the original favoured.

    A note names the columns that cannot be read, or not in time: their values are drawn as frequently as in
    rows.
    """
    known, unread = {one.path: one for one in columns}, []

    @cache
    def values_of(path: str) -> ColumnValues:
        try:
            if path in known and known[path].is_readable:
                return read_column_values(connection, known[path])
        except ServerError:
            if connection.closed:
                raise
        unread.append(path)
        return ColumnValues()

    found = with_positions(workload, texts, values.drawn(), values_of)
    if not unread:
        return found
    names = f"{', '.join(unread[:_MOST_NAMED])}{', …' if len(unread) > _MOST_NAMED else ''}"
    note = f"{names} could not be read: the values that the original uses most are unknown"
    return replace(found, notes=(*found.notes, note))


def _in_order(request: LogCaptureRequest, settings: LogSettings) -> tuple[LogFormat, list[Path]]:
    """Return the files' format, and the files in order of their first entries."""
    prefix = settings.line_prefix if request.line_prefix is None else request.line_prefix
    found: dict[Path, tuple[LogFormat, float]] = {}
    for path in dict.fromkeys(path.resolve() for path in request.files):
        head = read_head(path)
        if not head:
            continue  # a file that the server has created, but not written to
        log = recognise(head, prefix, settings.databases)
        if log is None:
            raise _not_a_log(path, head, prefix, settings.language)
        if request.line_prefix is not None and log.name != TEXT:
            raise UsageError(
                f'--log-line-prefix does not apply to "{path}"',
                detail=f"it is a {log.name}, which names its fields by itself",
                hint="leave --log-line-prefix out",
            )
        found[path] = log, log.first_s(head)
    if not found:
        raise UsageError(f"the log is empty: {', '.join(map(str, request.files))}")
    formats = {log.name: log for log, _ in found.values()}
    if len(formats) > 1:
        raise UsageError(
            f"the files have different formats: {', '.join(sorted(formats))}",
            detail="a server that logs in several formats writes each statement in all of them",
            hint="name only the files of one format",
        )
    return next(iter(formats.values())), sorted(found, key=lambda path: found[path][1])


def _not_a_log(path: Path, head: Sequence[str], prefix: str, language: str) -> UsageError:
    foreign = foreign_severity(head, prefix)
    if foreign is not None:
        return UsageError(
            f'"{path}" is not in English',
            detail=f'lines have "{foreign}" in place of a severity such as LOG; the server has lc_messages = '
            f"'{language}'",
            hint=_IN_ENGLISH,
        )
    first = next((text for line in head if (text := beginning(line)) is not None), None)
    shown = "" if first is None else f'; the first line with a severity begins "{first}"'
    return UsageError(
        f'"{path}" is not a log of this server',
        detail="it is neither a csvlog nor a jsonlog, and no line begins with log_line_prefix, "
        f"'{prefix}', and a severity such as LOG{shown}",
        hint="--log-line-prefix names the log_line_prefix that it was written with; compressed logs must be "
        "decompressed",
    )


def _first_unread(log: LogFormat, files: Sequence[Path], progress: Progress) -> str | None:
    """Return the beginning of the first unreadable line with a severity, without its message."""
    unread = (line for lines in read_files(files, progress.advance) for line in log.unreadable(lines))
    return next((text for line in unread if (text := beginning(line)) is not None), None)


def _no_statement(load: LoggedLoad, unread: str | None, language: str, *, is_text: bool) -> UsageError:
    facts = [f"entries: {load.entries}"]
    if load.unread:
        first = "" if unread is None else f', the first one begins "{unread}"'
        facts.append(f"{'lines' if is_text else 'entries'} that could not be read: {load.unread}{first}")
    if load.elsewhere:
        most = [f"{name} ({count})" for name, count in load.elsewhere.most_common(_MOST_DATABASES)]
        more = ", …" if len(load.elsewhere) > _MOST_DATABASES else ""
        facts.append(f"entries of other databases: {', '.join(most)}{more}")
    if load.foreign:
        facts.append(
            f"messages in another language: {load.foreign}; the server has lc_messages = '{language}'"
        )
    return UsageError(
        f'the log has no statement of database "{load.database}"',
        detail="; ".join(facts),
        hint=_remedy(load, unread),
    )


def _with_larger_sample(error: UsageError) -> UsageError:
    hint = "log a larger share, or for longer: --log-sample 10% --for 10m"
    return UsageError(error.message, detail=error.detail, hint=hint)


def _remedy(load: LoggedLoad, unread: str | None) -> str:
    """Return a hint for a log without statements of the database."""
    if load.foreign:
        return _IN_ENGLISH
    if unread is not None and load.unread > load.entries:
        return "--log-line-prefix names the log_line_prefix that the log was written with"
    if len(load.elsewhere) == 1:
        return f"for the statements of that database, name it by --dsn: dbname={next(iter(load.elsewhere))}"
    if load.elsewhere:
        return "for the statements of one of these databases, name it by --dsn"
    return "log_statement = 'all' or log_min_duration_statement = 0 logs statements"


def _observation(name: str, load: LoggedLoad, schema: Schema, settings: LogSettings) -> Observation:
    return Observation(
        name=name,
        server_version=schema.server_version,
        cluster=schema.cluster,
        database=schema.database,
        search_path=schema.search_path,
        seconds=load.seconds,
        clients=load.clients,
        sessions=None if load.sessions is None else max(1, round(load.sessions)),
        counted=NewCounts(load.seen(), {}, 0, Ended(0, 0), is_evicting=False),
        texts=load.texts.sql,
        types=schema.types,
        columns=schema.columns,
        writing=schema.writing,
        named=schema.named,
        sightings=(),
        log=LogKnowledge(
            transactions=load.transactions(),
            numbers=load.values.numbers,
            kept=load.values.kept,
            full=load.values.full,
            earlier=load.dependencies.earlier(),
            inferred=Inferred(
                load.dependencies.shifted(),
                load.dependencies.steps(),
                load.dependencies.ordinals(),
                load.dependencies.again(),
            ),
            notes=tuple(_notes(load, settings)),
            protocol=protocol_of_calls(load.sent),
        ),
    )


def _notes(load: LoggedLoad, settings: LogSettings) -> Iterator[str]:
    if load.values.is_keeping:
        yield "this file contains values of rows (--keep-values): restrict access to it"
    if settings.partial:
        found = ", ".join(f"{name} = '{value}'" for name, value in settings.partial.items())
        yield (
            "the server currently does not log every statement; if it did not during the load either, the "
            f"workload is incomplete: {found}"
        )
    yield from (f"of the sample: {note}" if load.is_sample else note for note in load.notes())
