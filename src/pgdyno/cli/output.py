"""Common output of commands: texts and JSON documents on stdout, progress on stderr.

No other file of ``cli`` writes to a terminal: servers, hosts and files say what is in the texts.
"""

from __future__ import annotations

import codecs
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TextIO

import click

from pgdyno.base.document import to_document
from pgdyno.base.ports import Progress
from pgdyno.base.terminal import escaped_json, printable
from pgdyno.cli._as_typed import as_typed

if TYPE_CHECKING:  # rich is loaded late: commands start without it
    from rich.console import RenderableType

SCHEMA_VERSION = 1
_COLUMNS_OF_A_FILE = 110
_SILENT_S = 10.0
_SOON_S = 3  # less is what an estimate was wrong by: the step before has ended

json_option = click.option("--json", "is_json", is_flag=True, help="Print one JSON document on stdout.")


def echo(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text for people, as a terminal may be given it, with commands as they are typed there."""
    click.echo(printable(as_typed(str(text))), err=err, nl=nl)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document with its schema version."""
    whole = to_document({"schema_version": SCHEMA_VERSION, **document})  # without infinity and NaN
    click.echo(escaped_json(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)))


def print_file(text: str) -> None:
    """Print the text of a file: as it is, or as a terminal may be given it."""
    shown = printable(text) if sys.stdout.isatty() else text
    click.echo(shown, nl=False, color=True)  # otherwise click takes escape sequences out


def print_wide(shown: RenderableType) -> None:
    """Print tables in the terminal's width."""
    from rich.console import Console
    from rich.segment import Segment, Segments

    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:  # a pipe or a file has no width: rich would take 80 columns
        console.width = _COLUMNS_OF_A_FILE
    parts = [one if one.control else Segment(printable(one.text), one.style) for one in console.render(shown)]
    console.print(Segments(parts), end="")


class Relayed:
    """Output of another machine's pgdyno as it comes: unchanged, or as a terminal may be given it."""

    def __init__(self, stream: TextIO) -> None:
        """Write to a stream of ours."""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, part: bytes) -> None:
        """Write a part, which may end in the middle of a character."""
        if self._stream.isatty():
            self._stream.write(printable(self._decoder.decode(part)))
        else:
            self._stream.buffer.write(part)
        self._stream.flush()


class Bar:
    """A progress bar with time left on a terminal's stderr."""

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
        """Show how far it is, in seconds of wall time."""
        left = max(0, round(total_s - done_s))
        self._progress.update(
            self._task, completed=done_s, total=total_s, left=f"{left // 60}:{left % 60:02d} left"
        )

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()


class Lines:
    """Progress as plain lines on stderr, for logs and pipes: one for each step, with the time left.

    During a step, the time left has a line of its own after ten seconds without any.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember when it began."""
        self._clock = clock
        self._started_s = self._printed_s = clock()
        self._ends_s = 0.0
        self._is_told = False  # whether the step has said before how far it is

    def step(self, message: str) -> None:
        """Print the current activity, and the time left if that is known."""
        left_s = round(self._ends_s - self._clock())
        self._ends_s, self._is_told = 0.0, False
        self._print(f"{message} (about {left_s} s left)" if left_s > _SOON_S else message)

    def advance(self, done_s: float, total_s: float) -> None:
        """Remember the time left; print it if nothing was printed for a while, and a step goes on."""
        left_s = round(max(0.0, total_s - done_s))
        self._ends_s = self._clock() + left_s
        if left_s and self._is_told and self._clock() - self._printed_s >= _SILENT_S:
            self._print(f"about {left_s} s left")
        self._is_told = True

    def close(self) -> None:
        """Nothing to take away."""

    def _print(self, message: str) -> None:
        self._printed_s = self._clock()
        echo(f"{self._printed_s - self._started_s:6.0f} s  {message}", err=True)


def open_progress() -> Bar | Lines:
    """Return a bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


_: type[Progress] = Lines  # both are Progress
