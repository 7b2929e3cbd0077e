"""A command that another machine's pgdyno sends here through ssh, and the words between the two.

First this side says two lines: the greeting, and its version. Then comes a line with the command. After it
come signs of life and perhaps the word to interrupt it; what goes back is the command's own output.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pgdyno.model.cells.cell import TypedAt
from pgdyno.remote.pgdyno_command import start_pgdyno

ALIVE, INTERRUPT = b".", b"i"
ALIVE_S = 3.0
SILENCE_S = 15.0
"""Without a sign of life for so long the connection is lost; ssh there gives up after 9 s."""

_PART_BYTES = 4096  # a pipe that can be written takes so much at once
_LOOK_S, _LAST_WORDS_S = 0.5, 2.0


@dataclass(frozen=True)
class CarriedCommand:
    """The words of a command, where they were typed, and hosts.toml if its load comes from load hosts."""

    words: tuple[str, ...]
    typed_at: TypedAt
    hosts_file_name: str = ""
    hosts_file: str = ""

    def line(self) -> bytes:
        """Return the line by which it is sent."""
        return json.dumps(asdict(self)).encode() + b"\n"


def run_carried(stream: int, output: int, errors: int) -> int:
    """Run the command that comes, and return its exit code; 0 if none comes. All three are descriptors.

    It is interrupted when the other side says so, is silent, or is gone; then it gives back what it has.
    """
    with open(stream, "rb", buffering=0, closefd=False) as file:  # nothing of what follows may be read here
        line = file.readline()
    if not line:
        return 0
    said = json.loads(line)
    carried = CarriedCommand(**{**said, "typed_at": TypedAt(**said["typed_at"])})
    with tempfile.TemporaryDirectory(prefix="pgdyno-") as directory:
        words = list(carried.words)
        if carried.hosts_file:
            path = Path(directory, Path(carried.hosts_file_name).name)
            path.write_text(carried.hosts_file)
            words[1:1] = ["--cell", str(path)]
        process = start_pgdyno(words, carried.typed_at.variables())
        return _tended(process, stream, output, errors)


def _tended(process: subprocess.Popen[bytes], stream: int, output: int, errors: int) -> int:
    gone = threading.Event()
    pumps = [
        _started(_hand_on, source, target, gone)
        for source, target in ((process.stdout, output), (process.stderr, errors))
    ]
    _started(_watch, stream, process, gone)
    try:
        status = process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            process.wait()
    for pump in pumps:
        pump.join(_LAST_WORDS_S)  # what it has left running may keep its output open
    return status if status >= 0 else 128 - status


def _started(target: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _watch(stream: int, process: subprocess.Popen[bytes], gone: threading.Event) -> None:
    """Interrupt a command once: when the other side says so, or is gone."""
    is_interrupted = False
    while select.select([stream], [], [], SILENCE_S)[0] and (said := os.read(stream, _PART_BYTES)):
        if INTERRUPT in said and not is_interrupted:
            is_interrupted = True
            process.terminate()
    gone.set()
    if not is_interrupted:
        process.terminate()


def _hand_on(source: IO[bytes], target: int, gone: threading.Event) -> None:
    """Write a command's output. It may go on writing when the other side is gone."""
    while part := os.read(source.fileno(), _PART_BYTES):
        while part and not gone.is_set():
            if select.select([], [target], [], _LOOK_S)[1]:
                try:
                    part = part[os.write(target, part) :]
                except BrokenPipeError:
                    gone.set()
