"""The ``pgdyno`` command: loads the subcommand's module, runs it, and turns errors into exit codes."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

import click

from pgdyno import __version__
from pgdyno.base.errors import (
    InterruptedByUserError,
    LeftServerWarning,
    PgdynoError,
    UnforeseenError,
    UsageError,
)
from pgdyno.base.text import did_you_mean
from pgdyno.cli._on_cell import WORDS, with_cell
from pgdyno.cli.output import ON_CELL, echo
from pgdyno.host.own_account import SYSTEM_PATH

COMMANDS = (
    "setup",
    "server",
    "build",
    "inspect",
    "advise",
    "levers",
    "explain-degree",
    "apply",
    "status",
    "switch",
    "revert",
    "bench",
    "compare",
    "profile",
    "run",
    "workload",
    "accelerate",
    "tune",
    "awake",
    "report",
    "experiments",
    "bundle",
    "fleet",
    "cell",
)
"""In the order of use. Each is the attribute ``command`` of ``cli/<name>.py``, with "_" for "-"."""

_PACKAGE = "/pgdyno/"
_SHOWN_CHARACTERS = 400  # arbitrary limit: an error's text may quote a file or server


class Journey(click.Group):
    """Load a command's module on first use, and list commands in the order of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 — click's signature
        """Return the names of all commands, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command. Raises: UsageError for an unknown name."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing or cmd_name.startswith("-"):
                return None
            hint = f"{did_you_mean(cmd_name, COMMANDS)}pgdyno --help lists all commands"
            raise UsageError(f'no command "{cmd_name}"', hint=hint)
        command = importlib.import_module(f"pgdyno.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)  # noqa: S101 — an invariant of this package
        return with_cell(command) if cmd_name in ON_CELL else command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and keep its words: they may be sent to another machine unchanged."""
        name, command, words = super().resolve_command(ctx, args)
        ctx.meta[WORDS] = tuple(words)
        return name, command, words


@click.group(
    cls=Journey,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done · 1 failed, nothing changed · 2 usage · 3 failed and something is still "
    "changed · 4 refused as unsafe · 5 regression, 6 inconclusive (only with --gate) · 130 interrupted, "
    "partial results kept.",
)
@click.version_option(__version__, prog_name="pgdyno")
def cli() -> None:
    """Put PostgreSQL on the dyno: measure it, make it faster, prove it, undo it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run pgdyno, and exit with the code documented in ``pgdyno --help``."""
    if os.geteuid() == 0:
        os.environ["PATH"] = (
            SYSTEM_PATH  # sudo may keep the user's PATH, which must not select programs for root
        )
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # set by nohup
            signal.signal(number, _interrupt)
    sys.excepthook = print_unexpected  # Python then exits with 1
    warnings.showwarning = partial(_show_warning, warnings.showwarning)
    try:
        cli.main(args=arguments, standalone_mode=False)
    except PgdynoError as error:
        _exit_with(error)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _exit_with(InterruptedByUserError("interrupted"))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)


def _interrupt(*_: object) -> NoReturn:
    """Treat SIGTERM and SIGHUP like Ctrl-C: restore all changes, keep partial results."""
    raise KeyboardInterrupt


def _show_warning(other: Callable[..., None], message: Warning | str, *arguments: Any) -> None:
    """Print pgdyno's own warnings in the form of its messages; leave those of libraries to Python."""
    if isinstance(message, LeftServerWarning):
        echo(f"pgdyno: WARNING:  {message}", err=True)
    else:
        other(message, *arguments)


def print_unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an unexpected error as a message, with its place in pgdyno; for ``sys.excepthook``."""
    ours = [frame for frame in traceback.extract_tb(trace) if _PACKAGE in frame.filename]
    places = (f"{frame.filename.rpartition(_PACKAGE)[2]}:{frame.lineno}" for frame in ours)
    text = " ".join(str(error)[:_SHOWN_CHARACTERS].split())
    _print_error(
        UnforeseenError(
            f"unforeseen {kind.__name__}: {text}",
            detail=f"raised in {' > '.join(places)}",
            hint="this is a bug in pgdyno: please report it with these lines; "
            "pgdyno status shows whether any change is still in effect, and pgdyno revert undoes it",
        )
    )


def _exit_with(error: PgdynoError) -> NoReturn:
    _print_error(error)
    sys.exit(error.exit_code)


def _print_error(error: PgdynoError) -> None:
    first, *others = str(error).split("\n")
    echo("\n".join([f"pgdyno: ERROR:  {first}  ({error.code})", *others]), err=True)


if __name__ == "__main__":
    main()
