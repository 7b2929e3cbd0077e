"""``pgdyno explain-degree``: which limit decides how many workers a query gets."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli._server_options import require_one_server, warn_about_password
from pgdyno.cli.output import echo, json_option, print_json
from pgdyno.model.servers.parallel_degree import MAX_WORKERS


@click.command(
    name="explain-degree",
    epilog="\b\nExamples:\n"
    "  pgdyno explain-degree 'SELECT count(*) FROM orders'\n"
    "  pgdyno explain-degree --dsn service=production --workers 8 'SELECT count(*) FROM orders'\n"
    "  pgdyno explain-degree --pgdata /var/lib/postgresql/17/main --dbname shop 'TABLE orders'",
)
@click.argument("sql")
@click.option(
    "--dsn", metavar="DSN", help="A running server: key=value pairs, a URI or service=…, as libpq takes."
)
@click.option(
    "--pgdata",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The running server's data directory on this host, instead of --dsn.",
)
@click.option(
    "--dbname",
    metavar="NAME",
    help="The database that the query is about, in place of the one that --dsn names or, with --pgdata, of "
    "PGDATABASE or postgres.",
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
    sql: str,
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

    Nothing is run and nothing is changed: the planner is asked by EXPLAIN, without ANALYZE, in transactions
    that are READ ONLY and rolled back, each with another setting changed by SET LOCAL. Without an option,
    the server is the one that psql would reach.
    """
    from pgdyno.app.inspection.explain_degree import explain_degree_of
    from pgdyno.model.document import to_document
    from pgdyno.report.plain.degree_text import degree_text

    require_one_server(dsn, pgdata, is_embedded=False)
    if dsn is not None:
        warn_about_password(dsn)
    degree = explain_degree_of(sql, workers, dsn, pgdata, dbname)
    if is_json:
        print_json({"degree": to_document(degree)})
    else:
        echo(degree_text(degree), nl=False)
