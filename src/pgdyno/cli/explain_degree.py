"""``pgdyno explain-degree``: the limit that decides the parallel workers of a query, or of a workload's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._server_options import require_one_server, warn_about_password
from pgdyno.cli.output import echo, json_option, open_progress, print_json, print_wide
from pgdyno.postgres.parallel_degree import MAX_WORKERS

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.model.experiments.captured import CapturedWorkload
    from pgdyno.postgres.parallel_degree import Degree
    from pgdyno.workload.workload_degrees import WorkloadServer


@click.command(
    name="explain-degree",
    epilog="\b\nExamples:\n"
    "  pgdyno explain-degree 'SELECT count(*) FROM orders'\n"
    "  pgdyno explain-degree --dsn service=production --workers 8 'SELECT count(*) FROM orders'\n"
    "  PGUSER=app pgdyno explain-degree --pgdata /var/lib/postgresql/17/main --dbname shop 'TABLE orders'\n"
    "  pgdyno explain-degree --dsn service=production --workload shop.toml\n"
    "  pgdyno explain-degree --dsn service=production --workload shop.toml --workers 4 select-orders",
)
@click.argument("sql", metavar="SQL|STATEMENT", required=False)
@click.option(
    "--workload",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A captured workload: list all of its statements, or explain its statement STATEMENT.",
)
@click.option(
    "--dsn", metavar="DSN", help="A running server: key=value pairs, a URI or service=…, as libpq takes."
)
@click.option(
    "--pgdata",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The running server's data directory on this host, instead of --dsn; PGUSER names the role.",
)
@click.option(
    "--dbname",
    metavar="NAME",
    help="The query's database [default: the one in --dsn; with --pgdata, PGDATABASE or postgres; if none is "
    "named, the database that the workload was captured from].",
)
@click.option(
    "--workers",
    type=click.IntRange(0, MAX_WORKERS),
    metavar="K",
    help="Show the changes that give K workers, checked with EXPLAIN where SET can make them.",
)
@json_option
def command(
    *,
    sql: str | None,
    file: Path | None,
    dsn: str | None,
    pgdata: Path | None,
    dbname: str | None,
    workers: int | None,
    is_json: bool,
) -> None:
    """Show how many parallel workers SQL gets, and why.

    The output shows the number of planned workers, the limit that decided it, and the remedies.

    The limits: the table's storage parameter parallel_workers, the table size thresholds,
    max_parallel_workers_per_gather, the costs of parallelism, debug_parallel_query, functions that are not
    parallel-safe, row locks, kinds of tables; and at execution the limits max_parallel_workers and
    max_worker_processes.

    Nothing is changed, and SQL is not executed. The planner is queried with EXPLAIN, without ANALYZE, in READ
    ONLY transactions that are rolled back, each with another setting changed by SET LOCAL. Without an option,
    the server is the one that psql would connect to.

    PostgreSQL evaluates functions of constants during planning. Connect as a role without privileges over
    the server, such as the application's: superusers, and roles that can become one, are refused.

    With --workload, the statements come from a captured workload. Their parameters get typical values from
    the planner's statistics: the middle of the column's histogram, or its most common value.
    """
    from pgdyno.plan.explain_degree import explain_degree_of
    from pgdyno.workload.workload_choice import read_workload
    from pgdyno.workload.workload_degrees import WorkloadServer, explain_statement

    require_one_server(dsn, pgdata, is_embedded=False)
    if file is not None and sql is None and workers is not None:
        raise UsageError(
            "--workers requires one statement", hint="name one; without --workers all are listed"
        )
    if dsn is not None:
        warn_about_password(dsn)
    if file is None:
        _show(explain_degree_of(sql or "", workers, dsn, pgdata, dbname), is_json=is_json)
        return
    workload, server = read_workload(file), WorkloadServer(dsn, pgdata, dbname)
    if sql is None:
        _list_statements(workload, server, is_json=is_json)
    else:
        _show(explain_statement(workload, sql, workers, server), is_json=is_json)


def _show(degree: Degree, *, is_json: bool) -> None:
    from pgdyno.base.facts import to_document
    from pgdyno.plan.degrees.degree_text import degree_text

    if is_json:
        print_json({"degree": to_document(degree)})
    else:
        echo(degree_text(degree), nl=False)


def _list_statements(workload: CapturedWorkload, server: WorkloadServer, *, is_json: bool) -> None:
    from pgdyno.base.facts import to_document
    from pgdyno.report.elements.terminal import PlainTable
    from pgdyno.workload.view import degrees_notes, degrees_table
    from pgdyno.workload.workload_degrees import degrees_of

    progress = open_progress()
    try:
        found = degrees_of(workload, server, progress)
    finally:
        progress.close()
    if is_json:
        print_json({"degrees": to_document(found)})
        return
    table = degrees_table(workload, found)
    echo(f"{table.caption}:")
    print_wide(PlainTable(table))
    echo("")
    for note in degrees_notes(workload, found):
        echo(note)
