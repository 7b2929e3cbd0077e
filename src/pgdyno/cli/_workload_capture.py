"""``pgdyno workload capture``: from statistics, logs or scripts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json
from pgdyno.cli.quantities import duration, percent

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.base.ports import Progress
    from pgdyno.model.experiments.captured import CapturedWorkload

_WATCHED_S = 60.0


@click.command(
    name="capture",
    epilog="\b\nExamples:\n"
    "  pgdyno workload capture --dsn service=production shop.toml\n"
    "  pgdyno workload capture --dsn 'host=db1 dbname=shop' --for 10m shop.toml\n"
    "  pgdyno workload capture --dsn service=production --log postgresql.csv shop.toml\n"
    "  pgdyno workload capture --dsn service=production --log-sample 1% --admin-dsn service=admin shop.toml\n"
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
    help="How long to watch the server [default: 60s]. With a pooler in session mode, this takes one of its "
    "server connections for the whole time.",
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LOG",
    help="Read the server's logs (csvlog, jsonlog, stderr) instead of watching it; repeatable, in any order.",
)
@click.option(
    "--log-line-prefix",
    "line_prefix",
    metavar="PREFIX",
    help="With --log: log_line_prefix when text logs were written [default: the server's current one].",
)
@click.option(
    "--log-sample",
    "share",
    callback=percent,
    metavar="SHARE",
    help="Let the server log this share of all transactions with their values while it is watched (e.g. 1%), "
    "and use these. Its settings are changed by ALTER SYSTEM for this time, with receipts.",
)
@click.option(
    "--admin-dsn",
    metavar="DSN",
    help="With --log-sample: the same server, as a superuser, to change these settings and to read the log "
    "[default: --dsn].",
)
@click.option(
    "--script",
    "scripts",
    multiple=True,
    metavar="SCRIPT[@WEIGHT]",
    help="Use a pgbench script instead of a server's load; repeatable, chosen at random by weight.",
)
@click.option(
    "--keep-values",
    "is_keeping_values",
    is_flag=True,
    help="With --log or --log-sample: keep parameter values. FILE then contains row data, and only you "
    "can read it.",
)
@click.option("--replace", is_flag=True, help="Replace FILE if it exists.")
@json_option
def capture(
    *,
    file: Path,
    dsn: str | None,
    seconds: float | None,
    logs: tuple[Path, ...],
    line_prefix: str | None,
    share: float | None,
    admin_dsn: str | None,
    scripts: tuple[str, ...],
    is_keeping_values: bool,
    replace: bool,
    is_json: bool,
) -> None:
    """Watch a running database, and write its workload to FILE.

    Statements and their call counts come from two readings of pg_stat_statements; transactions come from
    sampling the sessions in between. The file contains no row data and no constants: parameters are named
    after the columns that they stand for. The file lists what is unknown. Nothing is written to the server.
    The role of --dsn needs pg_read_all_stats. Watching takes less than 1% of one CPU of the server.

    With --log, the workload comes from a log of all statements. The server's schema is read, and samples of
    the columns that parameters stand for: FILE has positions in their order, not values.
    With --log-sample, it comes from a sample of transactions: the server logs them for this time, and its
    settings are restored at the end (after a kill: pgdyno revert). Its log then contains row data.
    With --script, the workload is what pgbench would run; parameters are drawn like pgbench's variables.
    """
    from pgdyno.cli._server_options import warn_about_password
    from pgdyno.store.workload_file import workload_name, write_workload_file

    _require_one_source(seconds, share, logs, scripts)
    _require_logs(logs, line_prefix, is_keeping_values=is_keeping_values and share is None)
    _require_sample(share, admin_dsn)
    name = workload_name(file)
    if file.exists() and not replace:
        raise UsageError(f'"{file}" already exists', hint="choose another name, or add --replace")
    for given in filter(None, (dsn, admin_dsn)):
        warn_about_password(given)
    progress = open_progress()
    try:
        if logs:
            workload = _from_logs(dsn, name, logs, line_prefix, progress, is_keeping_values=is_keeping_values)
        elif share is not None:
            seconds = _WATCHED_S if seconds is None else seconds
            workload = _from_sample(
                dsn, name, share, seconds, admin_dsn, progress, is_keeping_values=is_keeping_values
            )
        elif scripts:
            workload = _from_scripts(dsn, name, scripts, progress)
        else:
            workload = _from_statistics(dsn, name, seconds, progress)
    finally:
        progress.close()
    write_workload_file(file, workload)
    show_workload(workload, is_json=is_json)
    if not is_json:
        echo(f"\nWritten to {file}. Next, copy the database: pgdyno workload copy {file} --dsn …")


def show_workload(workload: CapturedWorkload, *, is_json: bool) -> None:
    """Print a workload."""
    from pgdyno.base.facts import to_document
    from pgdyno.workload.view import workload_text

    if is_json:
        print_json({"workload": to_document(workload)})
    else:
        echo(workload_text(workload), nl=False)


def _require_one_source(
    seconds: float | None, share: float | None, logs: tuple[Path, ...], scripts: tuple[str, ...]
) -> None:
    watching = ("--for", seconds is not None) if share is None else ("--log-sample", True)
    given = [option for option, is_given in (("--log", logs), ("--script", scripts), watching) if is_given]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} are mutually exclusive",
            detail="a workload is captured from a running server, from its logs, or from scripts",
        )


def _require_logs(logs: tuple[Path, ...], line_prefix: str | None, *, is_keeping_values: bool) -> None:
    if line_prefix is not None and not logs:
        raise UsageError(
            "--log-line-prefix requires --log", detail="statistics and scripts have no lines of a log"
        )
    if is_keeping_values and not logs:
        raise UsageError(
            "--keep-values requires --log or --log-sample",
            detail="statistics and scripts contain no parameter values",
        )


def _require_sample(share: float | None, admin_dsn: str | None) -> None:
    if share is not None and not 0 < share <= 1:
        raise UsageError(
            f"--log-sample {share * 100:.6g}% is not a share of transactions",
            hint="write a percentage above 0% and up to 100%, for example --log-sample 1%",
        )
    if admin_dsn is not None and share is None:
        raise UsageError("--admin-dsn requires --log-sample", detail="nothing else is changed on the server")


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
    dsn: str | None,
    name: str,
    logs: tuple[Path, ...],
    line_prefix: str | None,
    progress: Progress,
    *,
    is_keeping_values: bool,
) -> CapturedWorkload:
    from pgdyno.workload.capture_log import LogCaptureRequest, capture_log

    return capture_log(LogCaptureRequest(dsn, name, logs, is_keeping_values, line_prefix), progress)


def _from_sample(
    dsn: str | None,
    name: str,
    share: float,
    seconds: float,
    admin_dsn: str | None,
    progress: Progress,
    *,
    is_keeping_values: bool,
) -> CapturedWorkload:
    from pgdyno.builds.switching.server_access import server_access
    from pgdyno.workload.capture_sample import LogSampleRequest, capture_sample

    access = server_access(dsn if admin_dsn is None else admin_dsn)
    return capture_sample(access, LogSampleRequest(dsn, name, share, seconds, is_keeping_values), progress)
