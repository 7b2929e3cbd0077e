"""The use case ``explain-degree --workload``: parallel workers for the statements of a captured workload.

Nothing is executed. Typical values from the planner's statistics replace the parameters in the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pgdyno.base.errors import ConnectionFailedError, PgdynoError, ServerError, UsageError
from pgdyno.base.facts import Unknown
from pgdyno.base.ports import Progress
from pgdyno.base.text import did_you_mean, shortened
from pgdyno.model.experiments.captured import CapturedStatement, CapturedWorkload, OfColumn
from pgdyno.plan.explain_degree import check_statement, degree_of, inquiry_of, never_with_workers, open_named
from pgdyno.postgres.catalogued_tables import Column, ColumnStatistics
from pgdyno.postgres.connection.connection import Connection, names_database
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.column_statistics import read_column_statistics
from pgdyno.postgres.inspection.columns import read_columns
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.parallel_degree import Degree, StatementDegree
from pgdyno.postgres.planner.parallel_catalog import read_pools
from pgdyno.postgres.planner.parallel_plan import written_by
from pgdyno.postgres.planner.sql_text import first_word, has_parameter
from pgdyno.workload.capture.literals import in_place_of_parameters, quoted_text
from pgdyno.workload.capture.name_resolution import table_column, why_unknown
from pgdyno.workload.capture.row_use import with_values_for_returned
from pgdyno.workload.capture.statements import writing_command
from pgdyno.workload.capture.typical_values import Value, typical_values

_SHOWN = 40  # characters of a value
_MOST_SHOWN = 20  # values


@dataclass(frozen=True)
class WorkloadServer:
    """A server and a database; None means the database in the DSN, or else the workload's."""

    dsn: str | None
    data_directory: Path | None = None
    database: str | None = None


def degrees_of(
    workload: CapturedWorkload, server: WorkloadServer, progress: Progress
) -> tuple[StatementDegree, ...]:
    """Return the degrees of all statements, the one with the largest share first.

    Raises: ServerError, also if no statement can be planned there; DataDirectoryError.
    """
    shares = workload.shares
    with _opened(workload, server) as planned:
        database = planned.connection.info.dbname
        progress.step(f"planning {len(workload.statements)} statements in database {database}")
        rows = (planned.row(one, shares[one.name]) for one in workload.statements)
        found = sorted(rows, key=lambda one: (-one.share, one.statement))
    candidates = [one for one in found if not one.is_never]
    if candidates and not any(one.degree for one in candidates):
        raise ServerError(
            f'no statement of "{workload.name}" can be planned in database "{database}"',
            detail=f"{candidates[0].statement}: {candidates[0].why_none}",
            hint="choose a different database with --dbname, and connect as the application does",
        )
    return tuple(found)


def explain_statement(
    workload: CapturedWorkload, name: str, workers: int | None, server: WorkloadServer
) -> Degree:
    """Explain the degree of one statement.

    Raises: UsageError for an unknown statement, or one without a degree; ServerError, DataDirectoryError.
    """
    named = {one.name: one for one in workload.statements}
    if name not in named:
        raise UsageError(
            f'the workload "{workload.name}" has no statement "{name}"',
            hint=f"{did_you_mean(name, named)}without a name, all statements are listed",
        )
    with _opened(workload, server) as planned:
        return planned.degree(named[name], workers)


@contextmanager
def _opened(workload: CapturedWorkload, server: WorkloadServer) -> Iterator[_PlannedWorkload]:
    """Connect to the server, and read its settings and typical values of the workload's parameters."""
    database = server.database
    if database is None and not names_database(server.dsn):
        database = workload.database
    with closing(open_named(server.dsn, server.data_directory, database)) as connection:
        texts = [*(one.sql for one in workload.statements), *_columns_of(workload)]
        columns = read_columns(connection, workload.search_path, texts)
        drawn = with_values_for_returned(workload, columns)
        wanted = _columns_of(drawn)
        known = {one.path: table_column(one, columns) for one in columns if one.path in wanted}
        found = read_column_statistics(connection, [one for one in known.values() if one is not None])
        statistics: dict[str, ColumnStatistics | Unknown] = {
            path: found[source.path]
            if (source := known.get(path)) is not None and source.path in found
            else _no_statistics(path, connection.info.dbname, columns)
            for path in wanted
        }
        values = typical_values(drawn, statistics)
        yield _PlannedWorkload(connection, workload, read_settings(connection), values)


def _columns_of(workload: CapturedWorkload) -> frozenset[str]:
    parameters = (one for kind in workload.transactions for call in kind.calls for one in call.parameters)
    return frozenset(one.column for one in parameters if isinstance(one, OfColumn))


def _no_statistics(path: str, database: str, columns: Sequence[Column]) -> Unknown:
    named = next((one for one in columns if one.path == path), None)
    if named is None:
        return Unknown(f'the database "{database}" has no column {path}')
    if table_column(named, columns) is None:
        return Unknown(f"{why_unknown(named, columns)}, so its statistics are unknown")
    return Unknown(
        f"the server shows no statistics for {path}: run ANALYZE, and use a role that may read the column"
    )


@dataclass(frozen=True)
class _PlannedWorkload:
    """A workload on a server; ``values`` are typical values of its statements' parameters."""

    connection: Connection
    workload: CapturedWorkload
    settings: Mapping[str, Guc]
    values: Mapping[str, Sequence[Value]]

    def row(self, statement: CapturedStatement, share: float) -> StatementDegree:
        """Return a statement's degree, or the reason why it has none. Raises: ConnectionFailedError."""
        try:
            return StatementDegree(statement.name, share, self.degree(statement, None))
        except ConnectionFailedError:
            raise
        except (UsageError, ServerError) as error:
            is_never = _command_without_workers(statement) is not None
            return StatementDegree(statement.name, share, None, _one_line(error), is_never)

    def degree(self, statement: CapturedStatement, workers: int | None) -> Degree:
        """Explain a statement. Raises: UsageError if it has no degree; ServerError."""
        if command := _command_without_workers(statement):
            raise never_with_workers(command)
        sql, texts = self._with_values(statement)
        check_statement(sql)
        inquiry = inquiry_of(self.connection, sql, self.settings, self.workload.search_path)
        plan = inquiry.plan({})
        if command := written_by(plan):
            raise never_with_workers(command)
        found = degree_of(inquiry, plan, read_pools(self.connection, self.settings), workers)
        return replace(found, notes=(*found.notes, _note(texts))) if texts else found

    def _with_values(self, statement: CapturedStatement) -> tuple[str, Mapping[int, str]]:
        """Return a statement with values in place of its parameters, and the values. Raises: UsageError."""
        if statement.name not in self.values and has_parameter(statement.sql):
            raise UsageError(f'no transaction calls "{statement.name}", so its parameters are unknown')
        texts: dict[int, str] = {}
        for number, value in enumerate(self.values.get(statement.name, ()), 1):
            if isinstance(value, Unknown):
                raise UsageError(f'no typical value for ${number} of "{statement.name}"', detail=value.reason)
            texts[number] = quoted_text(value)
        sql = in_place_of_parameters(statement.sql, texts)
        if "\0" in sql:
            raise UsageError(f'"{statement.name}" contains a NUL character, which PostgreSQL does not allow')
        return sql, texts


def _command_without_workers(statement: CapturedStatement) -> str | None:
    """Return the command of a statement that writes rows, or begins or ends a transaction, else None."""
    return writing_command(statement.sql) if statement.is_prepared else first_word(statement.sql).upper()


def _note(texts: Mapping[int, str]) -> str:
    shown = [f"${number} = {shortened(text, _SHOWN)}" for number, text in islice(texts.items(), _MOST_SHOWN)]
    more = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return (
        f"planned with {', '.join(shown)}{more}, typical values from the planner's statistics; with other "
        "values the number of workers can differ, due to partition pruning or different row counts"
    )


def _one_line(error: PgdynoError) -> str:
    return f"{error.message}: {error.detail}" if error.detail else error.message
