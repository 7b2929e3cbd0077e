"""``pgdyno explain-degree``: which limit decides how many workers a query gets, or those of a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._server_options import require_one_server, warn_about_password
from pgdyno.cli.output import echo, json_option, open_progress, print_json, print_wide
from pgdyno.postgres.parallel_degree import MAX_WORKERS

if TYPE_CHECKING:  # imported late, so that --help stays fast
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
    help="A captured workload: list all of its statements, or explain the STATEMENT of that name.",
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
    help="The database that the query is about, in place of the one that --dsn names or, with --pgdata, of "
    "PGDATABASE or postgres; where none is named, a workload's is the one that it was captured from.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, MAX_WORKERS),
    metavar="K",
    help="Show the changes that give K workers, tried by EXPLAIN where SET can make them.",
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

    It shows how many are planned, which limit decided that, and the remedies.

    The limits: the table's option parallel_workers, the thresholds of size, the cap of a Gather, the costs
    of parallelism, debug_parallel_query, functions that are not parallel-safe, locks, kinds of tables; and,
    when it runs, the pools max_parallel_workers and max_worker_processes.

    Nothing is changed, and SQL is not executed: the planner is asked by EXPLAIN, without ANALYZE, in
    transactions that are READ ONLY and rolled back, each with another setting changed by SET LOCAL. Without
    an option, the server is the one that psql would reach.

    PostgreSQL computes functions of constants while it plans. Connect as a role without rights over the
    server, such as the application's: superusers, and roles that can become one, are refused.

    With --workload, the statements are a captured workload's. Their parameters have typical values of the
    planner's statistics: the middle of the column's histogram, or its most common value.
    """
    from pgdyno.plan.explain_degree import explain_degree_of
    from pgdyno.workload.workload_choice import read_workload
    from pgdyno.workload.workload_degrees import WorkloadServer, explain_statement

    require_one_server(dsn, pgdata, is_embedded=False)
    if file is not None and sql is None and workers is not None:
        raise UsageError(
            "--workers is about one statement", hint="name one; without --workers all are listed"
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
    from pgdyno.base.document import to_document
    from pgdyno.plan.degrees.degree_text import degree_text

    if is_json:
        print_json({"degree": to_document(degree)})
    else:
        echo(degree_text(degree), nl=False)


def _list_statements(workload: CapturedWorkload, server: WorkloadServer, *, is_json: bool) -> None:
    from pgdyno.base.document import to_document
    from pgdyno.report.elements.terminal import PlainTable
    from pgdyno.workload.view.degrees_text import degrees_notes, degrees_table
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
