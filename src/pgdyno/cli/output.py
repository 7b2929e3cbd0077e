"""Common output of commands: texts and JSON documents on stdout, progress on stderr.

No other file of ``cli`` writes to a terminal: texts may contain strings from servers, hosts and files.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

import click

from pgdyno.base.facts import to_document
from pgdyno.base.ports import Progress
from pgdyno.base.text import escaped_json, printable
from pgdyno.model.cells.cell import typed_at

if TYPE_CHECKING:  # rich is loaded late: commands start without it
    from rich.console import RenderableType


LOADED_BY_CELL = frozenset({"bench", "compare", "run", "accelerate", "tune"})
"""Commands that take their load from the cell's load hosts."""
LOADED_THERE = frozenset({"profile"})
"""Commands for which the server's host generates the load itself."""
ON_CELL = LOADED_BY_CELL | LOADED_THERE | {"inspect", "advise", "apply", "status", "revert"}
"""All commands with ``--cell``."""
_ON_HOST = frozenset({"setup", "server", "build", "levers", "explain-degree", "switch", "workload", "awake"})
_ON_HOST |= {"report", "experiments", "bundle"}

_COMMAND = re.compile(rf"\bpgdyno ({'|'.join(sorted(ON_CELL | _ON_HOST))})\b(?! --cell\b)")


def as_typed(text: str) -> str:
    """Return a text with its commands rewritten to reach the server's host from the user's machine.

    Commands that pgdyno can forward get ``--cell``. The others work on files of that host and get the ssh
    command in front.
    """
    user = typed_at(os.environ)
    if user is None:
        return text

    def command(found: re.Match[str]) -> str:
        if found[1] in ON_CELL:
            return f"{found[0]} --cell {shlex.quote(user.cell)}"
        return f"{user.by_hand} {found[1]}"

    return _COMMAND.sub(command, text)


SCHEMA_VERSION = 1
_COLUMNS_OF_A_FILE = 110
_SILENT_S = 10.0
_SOON_S = 3  # a smaller remainder is the estimate's error: the step it belongs to has ended

json_option = click.option("--json", "is_json", is_flag=True, help="Print one JSON document on stdout.")


def warn(message: str) -> None:
    """Print a warning on stderr in the form of error messages."""
    echo(f"pgdyno: WARNING:  {message}", err=True)


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text without unsafe control characters, with commands rewritten for the user's machine."""
    click.echo(printable(as_typed(str(text))), err=err, nl=nl)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document with its schema version."""
    whole = to_document({"schema_version": SCHEMA_VERSION, **document})  # without infinity and NaN
    click.echo(escaped_json(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)))


def print_file(text: str) -> None:
    """Print a file's text, unchanged unless stdout is a terminal; there, escape control characters."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # otherwise click strips escape sequences


def print_wide(shown: RenderableType) -> None:
    """Print tables, fitted to the terminal's width."""
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:  # pipes and files have no width: rich would use 80 columns
        console.width = _COLUMNS_OF_A_FILE
    parts = [one if one.control else Segment(printable(one.text), one.style) for one in console.render(shown)]
    console.print(Segments(parts), end="")


class Relayed:
    """Relays output of pgdyno on another machine: unchanged, but escaped if it goes to a terminal."""

    def __init__(self, stream: TextIO) -> None:
        """Relay to a local stream."""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, part: bytes) -> None:
        """Write a chunk of output; it may end within a character."""
        if self._stream.isatty():
            self._stream.write(printable(self._decoder.decode(part)))
        else:
            self._stream.buffer.write(part)
        self._stream.flush()


class Bar:
    """A progress bar with the remaining time, for a terminal on stderr."""

    def __init__(self) -> None:
        """Start the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._progress = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=None, left="")
        self._progress.start()

    def step(self, message: str) -> None:
        """Show the current activity."""
        self._progress.update(self._task, description=printable(message))

    def advance(self, done_s: float, total_s: float) -> None:
        """Show the progress, in seconds of wall time."""
        left = max(0, round(total_s - done_s))
        self._progress.update(
            self._task, completed=done_s, total=total_s, left=f"{left // 60}:{left % 60:02d} left"
        )

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class Lines:
    """Progress as plain lines on stderr, for logs and pipes: one line per step, with the remaining time.

    During a step, an extra line shows the remaining time after ten seconds without output.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Record the start time."""
        self._clock = clock
        self._started_s = self._printed_s = clock()
        self._ends_s = 0.0
        self._has_advanced = False  # whether this step has reported its progress before

    def step(self, message: str) -> None:
        """Print the current activity, with the remaining time if known."""
        left_s = round(self._ends_s - self._clock())
        self._ends_s, self._has_advanced = 0.0, False
        self._print(f"{message} (about {left_s} s left)" if left_s > _SOON_S else message)

    def advance(self, done_s: float, total_s: float) -> None:
        """Record the remaining time; print it if the step continues and nothing was printed for a while."""
        left_s = round(max(0.0, total_s - done_s))
        self._ends_s = self._clock() + left_s
        if left_s and self._has_advanced and self._clock() - self._printed_s >= _SILENT_S:
            self._print(f"about {left_s} s left")
        self._has_advanced = True

    def close(self) -> None:
        """Do nothing: printed lines stay."""

    def _print(self, message: str) -> None:
        self._printed_s = self._clock()
        echo(f"{self._printed_s - self._started_s:6.0f} s  {message}", err=True)


def open_progress() -> Bar | Lines:
    """Return a bar if stderr is a terminal, else lines."""
    return Bar() if sys.stderr.isatty() else Lines()


_: type[Progress] = Lines  # Bar and Lines implement Progress
