"""Capture a workload from a server's logs; only the schema is read from the server itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import Connection, connect, dsn_of
from pgdyno.postgres.inspection.columns import read_identity
from pgdyno.postgres.sampling.log_files import LogSettings, read_files, read_head, read_log_settings
from pgdyno.postgres.statement_counts import NewCounts
from pgdyno.workload.capture.casts import casts_of
from pgdyno.workload.capture.literals import in_place_of_parameters
from pgdyno.workload.capture.logs.format import LogFormat, recognise
from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values
from pgdyno.workload.capture.pauses import with_pauses
from pgdyno.workload.capture.protocol import protocol_of_calls
from pgdyno.workload.capture.workload import LogKnowledge, Observation, assemble
from pgdyno.workload.capture_server import why_omitted
from pgdyno.workload.schema import Schema, read_schema, require_parsing, types_of


@dataclass(frozen=True)
class LogCaptureRequest:
    """A server, a name for its workload, and its logs in any order.

    ``is_keeping_values``: the workload contains the parameters' values.
    """

    dsn: str | None
    name: str
    files: Sequence[Path]
    is_keeping_values: bool


def capture_log(request: LogCaptureRequest, progress: Progress) -> CapturedWorkload:
    """Return a database's workload according to logs. Nothing is written to the server.

    Raises: ConnectionFailedError, ServerError; UsageError for files that are not logs, or have no statements.
    """
    with closing(connect(request.dsn)) as connection:
        require_parsing(connection)
        settings = read_log_settings(connection)
        _, database = read_identity(connection)
        dsn = dsn_of(connection, request.dsn)
    log, files = _in_order(request.files, settings)
    progress.step(f"reading {log.name}: {', '.join(path.name for path in files)}")
    load = LoggedLoad(database, Values(request.is_keeping_values))
    for lines in read_files(files, progress.advance):
        load.read(log.entries(lines))
    load.finish()
    if not load.calls:
        raise _no_statement(load)
    with closing(connect(dsn)) as connection:  # a new session, since reading takes long
        progress.step(f"analysing {len(load.texts.sql)} statements")
        schema = read_schema(connection, load.texts.sql)
        observed = _with_types(connection, _observation(request.name, load, schema, settings), load)
    workload = assemble(observed)
    if not workload.transactions:
        raise UsageError("nothing in the log can be replayed", detail=why_omitted(workload))
    return with_pauses(workload, load.clients, load.pauses_s) if load.pauses_s else workload


def _in_order(paths: Sequence[Path], settings: LogSettings) -> tuple[LogFormat, list[Path]]:
    """Return the files' format, and the files in order of their first entries."""
    found: dict[Path, tuple[LogFormat, float]] = {}
    for path in dict.fromkeys(path.resolve() for path in paths):
        head = read_head(path)
        if not head:
            continue  # a file that the server has created, but not written to
        log = recognise(head, settings.line_prefix)
        if log is None:
            raise UsageError(
                f'"{path}" is not a log of this server',
                detail="it is neither a csvlog nor a jsonlog, and no line begins with log_line_prefix, "
                f"'{settings.line_prefix}', and a severity such as LOG",
                hint="was it written with a different log_line_prefix, or is it compressed?",
            )
        found[path] = log, log.first_s(head)
    if not found:
        raise UsageError(f"the log is empty: {', '.join(map(str, paths))}")
    formats = {log.name: log for log, _ in found.values()}
    if len(formats) > 1:
        raise UsageError(
            f"the files have different formats: {', '.join(sorted(formats))}",
            detail="a server that logs in several formats writes each statement in all of them",
            hint="name only the files of one format",
        )
    return next(iter(formats.values())), sorted(found, key=lambda path: found[path][1])


def _no_statement(load: LoggedLoad) -> UsageError:
    elsewhere = f", {load.elsewhere} of them of other databases" if load.elsewhere else ""
    return UsageError(
        f'the log has no statement of database "{load.database}"',
        detail=f"entries: {load.entries}{elsewhere}",
        hint="log_statement = 'all' or log_min_duration_statement = 0 logs statements; messages must be in "
        "English (lc_messages = 'C')",
    )


def _observation(name: str, load: LoggedLoad, schema: Schema, settings: LogSettings) -> Observation:
    return Observation(
        name=name,
        server_version=schema.server_version,
        cluster=schema.cluster,
        database=schema.database,
        search_path=schema.search_path,
        seconds=load.seconds,
        clients=load.clients,
        transactions=0,
        counted=NewCounts(load.seen(), {}, 0, 0, is_evicting=False),
        texts=load.texts.sql,
        types=schema.types,
        columns=schema.columns,
        sightings=(),
        log=LogKnowledge(
            transactions=load.transactions(),
            numbers=load.values.numbers,
            kept=load.values.kept,
            full=load.values.full,
            earlier=load.equalities.earlier(),
            notes=tuple(_notes(load, settings)),
            protocol=protocol_of_calls(load.sent),
        ),
    )


def _with_types(connection: Connection, observed: Observation, load: LoggedLoad) -> Observation:
    """Return statements with casts for parameters that were numbers and have a different type."""
    cast = {
        one: in_place_of_parameters(observed.texts[one], casts)
        for one, its in observed.types.items()
        if one in observed.counted.seen and (casts := _casts(observed, one, its, load.texts.types[one]))
    }
    found = {one: its for one, its in types_of(connection, cast).items() if not isinstance(its, str)}
    return replace(
        observed,
        texts={**observed.texts, **{one: cast[one] for one in found}},
        types={**observed.types, **found},
    )


def _casts(
    observed: Observation, one: int, types: tuple[str, ...] | str, numbers: Mapping[int, str]
) -> dict[int, str]:
    """Return parameters with their casts, such as ``$1::integer``, by number."""
    casts = casts_of(observed.texts[one], types, numbers, observed.columns, observed.counted.seen[one])
    return {number: f"${number}::{type_}" for number, type_ in casts.items()}


def _notes(load: LoggedLoad, settings: LogSettings) -> Iterator[str]:
    if load.values.is_keeping:
        yield "this file contains values of rows (--keep-values): restrict access to it"
    if settings.partial:
        found = ", ".join(f"{name} = '{value}'" for name, value in settings.partial.items())
        yield (
            "the server currently does not log every statement; if it did not during the load either, the "
            f"workload is incomplete: {found}"
        )
    yield from load.notes()
