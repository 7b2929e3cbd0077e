"""``pgdyno workload capture``: from statistics, from logs, or from scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json
from pgdyno.cli.quantities import duration

if TYPE_CHECKING:  # imported late, so that --help stays fast
    from pgdyno.base.ports import Progress
    from pgdyno.model.experiments.captured import CapturedWorkload

_WATCHED_S = 60.0


@click.command(
    name="capture",
    epilog="\b\nExamples:\n"
    "  pgdyno workload capture --dsn service=production shop.toml\n"
    "  pgdyno workload capture --dsn 'host=db1 dbname=shop' --for 10m shop.toml\n"
    "  pgdyno workload capture --dsn service=production --log postgresql.csv shop.toml\n"
    "  pgdyno workload capture --dsn dbname=bank --script transfer.sql@9 --script report.sql bank.toml",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--dsn", metavar="DSN", help="A running server: key=value pairs, a URI or service=…, as libpq takes."
)
@click.option(
    "--for",
    "seconds",
    callback=duration,
    metavar="TIME",
    help="How long to watch the server [default: 60s]. A pooler by session lends a session for all of it.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="Read logs of the server (csvlog, jsonlog, stderr) instead of watching it; files in any order.",
)
@click.option(
    "--script",
    "scripts",
    multiple=True,
    metavar="SCRIPT[@WEIGHT]",
    help="Take a pgbench script instead of a server's load; several are chosen by weight.",
)
@click.option(
    "--keep-values",
    "is_keeping_values",
    is_flag=True,
    help="With --log: keep the values of parameters. FILE then has values of rows, for your eyes only.",
)
@click.option("--replace", is_flag=True, help="Replace FILE if it is there.")
@json_option
def capture(
    *,
    file: Path,
    dsn: str | None,
    seconds: float | None,
    logs: tuple[Path, ...],
    scripts: tuple[str, ...],
    is_keeping_values: bool,
    replace: bool,
    is_json: bool,
) -> None:
    """Watch a database at work, and write its workload to FILE.

    Statements and how often they are called come from two readings of pg_stat_statements, transactions from
    looking at sessions in between. The file has no values of rows and no constants: parameters are named by
    the columns that they stand for. What is not known is said in it. Nothing is written to the server; the
    role takes pg_read_all_stats. Watching takes less than a hundredth of a CPU of the server.

    With --log, all of it comes from a log of every statement, and the server is asked about its schema alone.
    With --script, it is what pgbench would run; parameters are drawn as its variables are.
    """
    from pgdyno.cli._server_options import warn_about_password
    from pgdyno.store.workload_file import workload_name, write_workload_file

    _require_one_source(seconds, logs, scripts, is_keeping_values=is_keeping_values)
    name = workload_name(file)
    if file.exists() and not replace:
        raise UsageError(f'"{file}" is there already', hint="choose another name, or add --replace")
    if dsn is not None:
        warn_about_password(dsn)
    progress = open_progress()
    try:
        if logs:
            workload = _from_logs(dsn, name, logs, progress, is_keeping_values=is_keeping_values)
        elif scripts:
            workload = _from_scripts(dsn, name, scripts, progress)
        else:
            workload = _from_statistics(dsn, name, seconds, progress)
    finally:
        progress.close()
    write_workload_file(file, workload)
    show_workload(workload, is_json=is_json)
    if not is_json:
        echo(f"\nWritten to {file}. Next, a copy of the database: pgdyno workload copy {file} --dsn …")


def show_workload(workload: CapturedWorkload, *, is_json: bool) -> None:
    """Print a workload."""
    from pgdyno.base.document import to_document
    from pgdyno.workload.view.workload_text import workload_text

    if is_json:
        print_json({"workload": to_document(workload)})
    else:
        echo(workload_text(workload), nl=False)


def _require_one_source(
    seconds: float | None, logs: tuple[Path, ...], scripts: tuple[str, ...], *, is_keeping_values: bool
) -> None:
    given = [
        option
        for option, is_given in (("--log", logs), ("--script", scripts), ("--for", seconds is not None))
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} exclude each other",
            detail="a workload comes from a server that is watched, from its logs, or from scripts",
        )
    if is_keeping_values and not logs:
        raise UsageError(
            "--keep-values belongs to --log", detail="statistics and scripts have no values of parameters"
        )


def _from_statistics(
    dsn: str | None, name: str, seconds: float | None, progress: Progress
) -> CapturedWorkload:
    from pgdyno.workload.capture_server import CaptureRequest, capture

    return capture(CaptureRequest(dsn, name, _WATCHED_S if seconds is None else seconds), progress)


def _from_scripts(
    dsn: str | None, name: str, scripts: tuple[str, ...], progress: Progress
) -> CapturedWorkload:
    from pgdyno.workload.capture_script import ScriptCaptureRequest, capture_script

    return capture_script(ScriptCaptureRequest(dsn, name, scripts), progress)


def _from_logs(
    dsn: str | None, name: str, logs: tuple[Path, ...], progress: Progress, *, is_keeping_values: bool
) -> CapturedWorkload:
    from pgdyno.workload.capture_log import LogCaptureRequest, capture_log

    return capture_log(LogCaptureRequest(dsn, name, logs, is_keeping_values), progress)
