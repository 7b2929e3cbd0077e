"""Common output of commands: JSON documents on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

import click

from pgdyno.model.ports import Progress

SCHEMA_VERSION = 1

json_option = click.option("--json", "is_json", is_flag=True, help="Print one JSON document on stdout.")


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print a text, whose words may be a server's or a file's: its lines cannot steer the terminal."""
    from pgdyno.report.elements.terminal import printable

    click.echo("\n".join(map(printable, text.split("\n"))), nl=nl, err=err)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document with its schema version."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, ensure_ascii=False)
    click.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


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
        from pgdyno.report.elements.terminal import printable

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
    """Progress as plain lines on stderr, for logs and pipes."""

    def __init__(self) -> None:
        """Remember when it began."""
        self._started = time.monotonic()

    def step(self, message: str) -> None:
        """Print the current activity."""
        echo(f"{time.monotonic() - self._started:6.0f} s  {message}", err=True)

    def advance(self, done_s: float, total_s: float) -> None:
        """Print the time left."""
        click.echo(
            f"{time.monotonic() - self._started:6.0f} s  about {total_s - done_s:.0f} s left", err=True
        )

    def close(self) -> None:
        """Nothing to take away."""


def open_progress() -> Bar | Lines:
    """Return a bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


_: type[Progress] = Lines  # both are Progress
