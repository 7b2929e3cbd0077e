"""``pgdyno workload``: capture a running server's workload, inspect it, and replay it on a copy."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.cli._workload_capture import capture, show_workload
from pgdyno.cli._workload_copy import copy
from pgdyno.cli.output import echo, json_option, open_progress, print_json, print_wide
from pgdyno.cli.quantities import duration

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.measure.replay import Replay


_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(name="workload")
def command() -> None:
    """Capture a server's own workload, and replay it on a copy."""


command.add_command(capture)
command.add_command(copy)


@command.command(name="inspect")
@_FILE
@json_option
def inspect(*, file: Path, is_json: bool) -> None:
    """Show the workload in FILE.

    The output lists its transactions and what is unknown about it.
    """
    from pgdyno.workload.workload_choice import read_workload

    show_workload(read_workload(file), is_json=is_json)


@command.command(name="edit")
@_FILE
def edit(*, file: Path) -> None:
    """Edit the workload in FILE with $VISUAL or $EDITOR.

    The edited file is checked before it replaces the original.
    """
    echo(f"{file} was changed." if edit_workload(file) else f"{file} is unchanged.")


@command.command(
    name="replay",
    epilog="\b\nExamples:\n"
    "  createdb --template shop shop_copy\n"
    "  pgdyno workload replay shop.toml --dsn dbname=shop_copy --allow-load",
)
@_FILE
@click.option("--dsn", required=True, metavar="DSN", help="A copy of the database, on any server.")
@click.option("--allow-load", is_flag=True, help="Allow load on that server, and writes to that database.")
@click.option(
    "--is-copy",
    is_flag=True,
    help="Confirm that this is a copy although it has the original's name and system identifier, as after a "
    "base backup.",
)
@click.option(
    "--for",
    "seconds",
    callback=duration,
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long to replay.",
)
@click.option(
    "--clients",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of connections [default: the original's active sessions; with --pauses, all its sessions].",
)
@click.option(
    "--protocol",
    type=click.Choice(["simple", "extended", "prepared"]),
    help="Protocol of the statements [default: the file's].",
)
@click.option(
    "--rate",
    "rate_tps",
    type=click.FloatRange(min=0, min_open=True),
    metavar="TPS",
    help="Arrival rate in transactions per second, independent of how long earlier ones take [default: each "
    "client starts the next transaction immediately].",
)
@click.option(
    "--pace",
    type=click.FloatRange(min=0, min_open=True),
    metavar="K",
    help="Arrival rate as a multiple of the original's: 1 is as captured. With --pauses, pauses are divided "
    "by this factor instead.",
)
@click.option(
    "--pauses",
    "is_pausing",
    is_flag=True,
    help="Sessions pause between transactions like the original's sessions.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    help="Seed of random choices [default: another one each time, which the output shows].",
)
@json_option
def replay(
    *,
    file: Path,
    dsn: str,
    allow_load: bool,
    is_copy: bool,
    seconds: float,
    clients: int | None,
    protocol: str | None,
    rate_tps: float | None,
    pace: float | None,
    is_pausing: bool,
    seed: int | None,
    is_json: bool,
) -> None:
    """Replay the workload in FILE on a copy of its database.

    The output shows how similar the replay was to the original. Invariants in FILE are checked before and
    after the load.

    The replay writes to the copy wherever the workload writes. The copy needs pg_stat_statements to count
    the replay's statements, as it counted the original's. Connect as the application's role: statements,
    functions and triggers run with its privileges. Copies with foreign tables are refused, because these lead
    to other servers.
    """
    from pgdyno.cli._server_options import warn_about_password
    from pgdyno.measure.replay import ReplayRequest, replay_pace
    from pgdyno.measure.replay import replay as run
    from pgdyno.workload.workload_choice import read_workload

    workload = read_workload(file)
    if not allow_load:
        raise RefusedError(
            "a replay puts load on the server, and writes to the database where the workload writes",
            hint="add --allow-load if the database is an expendable copy",
        )
    paced = replay_pace(workload, clients, rate_tps, pace, is_pausing=is_pausing)
    warn_about_password(dsn)
    request = ReplayRequest(dsn, seconds, paced, protocol, seed, is_copy)
    progress = open_progress()
    try:
        done = run(workload, request, progress)
    finally:
        progress.close()
    _show_replay(done, is_json=is_json)


def _show_replay(done: Replay, *, is_json: bool) -> None:
    from pgdyno.base.facts import to_document
    from pgdyno.model.experiments.failures import failures_text
    from pgdyno.model.experiments.likeness import likeness_words
    from pgdyno.report.elements.terminal import PlainTable
    from pgdyno.workload.view import likeness_table

    if is_json:
        print_json({"replay": to_document(done), "likeness": done.likeness.least})
        return
    failed = failures_text(done.run.failures) or "none"
    original = "" if done.original_tps is None else f" ({done.original_tps:.1f} in the original)"
    echo(f"{done.run.tps:.1f} transactions per second{original}; failed: {failed}\n")
    table = likeness_table(done.likeness)
    echo(f"{table.caption}:")
    print_wide(PlainTable(table))
    echo(f"\n{likeness_words(done.likeness)}")
    if done.invariants:
        echo(f"Invariants kept: {', '.join(done.invariants)}")
    echo(f"Seed of random choices: {done.seed}")
    for note in done.notes:
        echo(f"  {note}")


_DRAFT = ".draft"  # after the file's name


def edit_workload(file: Path) -> bool:
    """Open a copy in the user's editor and replace the file with it; return whether it was changed.

    Raises: UsageError for a file that is not a workload, a failed editor, or a draft with errors (the draft
    is kept for the next attempt); RefusedError if other users could replace the draft.
    """
    from pgdyno.host.files.trusted_files import require_trusted
    from pgdyno.workload.workload_choice import read_workload

    draft = file.with_name(file.name + _DRAFT)
    require_trusted(draft, "the editor writes it, as you", "copy the workload to a directory that you own")
    if not os.path.lexists(draft):
        read_workload(file)
        _copy(file, draft)
    _require_plain(draft)
    _run_editor(draft)
    try:
        read_workload(draft)
    except UsageError as error:
        error.hint = f'"{file}" is unchanged; run the same command to continue with "{draft}"'
        raise
    is_changed = draft.read_bytes() != file.read_bytes()
    draft.replace(file)
    return is_changed


def _copy(file: Path, draft: Path) -> None:
    """Copy a file with its mode: it may contain row data."""
    from pgdyno.store.files import open_plain

    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open_plain(file) as source, os.fdopen(descriptor, "wb") as target:
        shutil.copyfileobj(source, target)
        os.fchmod(target.fileno(), stat.S_IMODE(os.fstat(source.fileno()).st_mode))


def _require_plain(draft: Path) -> None:
    status = draft.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise RefusedError(
            f'"{draft}" is a link, or not a regular file',
            detail="the editor would write to its target",
            hint="remove it, and try again",
        )


def _run_editor(draft: Path) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        status = subprocess.run([*shlex.split(editor), str(draft)], check=False).returncode
    except (OSError, ValueError) as error:
        raise UsageError(
            f'could not run the editor "{editor}"', detail=str(error), hint="name one in $EDITOR"
        ) from error
    if status != 0:
        raise UsageError(
            f'the editor "{editor}" exited with status {status}',
            hint=f'run the same command to continue with "{draft}"',
        )
