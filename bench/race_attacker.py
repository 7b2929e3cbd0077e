"""The attacker: a process of an ordinary user that exchanges names as fast as it can.

It puts a link to root's directory, or a FIFO, in the place of the data directory, of its parent or of a file,
waits for some microseconds, and puts everything back. Who looks twice sees two different things.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.race_place import FILES, Place

_LIBC = ctypes.CDLL(None, use_errno=True)
_END, _NO_FIFOS = 8, 9  # bytes of the shared memory, after the count
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_MENDED_EVERY = 16  # exchanges
_PAUSES_S = (0.0, 1e-6, 5e-6, 2e-5, 1e-4)  # of all lengths that a step of an operation may have


@dataclass(frozen=True)
class Attacker:
    """A running attacker."""

    pid: int
    shared: mmap.mmap

    @property
    def exchanges(self) -> int:
        """How often it has exchanged two names so far."""
        return int(struct.unpack_from("q", self.shared)[0])

    def leave_out_fifos(self) -> None:
        """Let it go on with links alone."""
        self.shared[_NO_FIFOS] = 1


@contextmanager
def attacking(place: Place) -> Iterator[Attacker]:
    """Let the attacker work; everything is in its place again at the end."""
    shared, parent = mmap.mmap(-1, 16), os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(place.gid)
        os.setuid(place.uid)
        try:
            _attack(place, shared, parent)
        finally:
            os._exit(0)
    attacker = Attacker(pid, shared)
    try:
        while attacker.exchanges == 0:
            time.sleep(0.001)
        yield attacker
    finally:
        shared[_END] = 1
        os.waitpid(pid, 0)


def _attack(place: Place, shared: mmap.mmap, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # root's process ends this one
    count, choose = 0, random.Random(0)  # noqa: S311 — where to strike next, no secret
    links = [(place.data, place.data.with_name("main.link")), (place.base / "17", place.base / "17.link")]
    links = links * len(FILES) + _pairs(place, "link")
    every = links + _pairs(place, "fifo")
    while not shared[_END] and os.getppid() == parent:
        pair = choose.choice(links if shared[_NO_FIFOS] else every)
        for _ in range(2):  # there and back
            if _exchange(*pair):
                count += 1
                struct.pack_into("q", shared, 0, count)
            until = time.perf_counter() + choose.choice(_PAUSES_S)
            while time.perf_counter() < until:
                pass
        if count % _MENDED_EVERY < 2:
            _mend(place)


def _pairs(place: Place, kind: str) -> list[tuple[Path, Path]]:
    return [(place.data / name, place.data / f"{name}.{kind}") for name in FILES]


def _exchange(one: Path, other: Path) -> bool:
    paths = os.fsencode(one), os.fsencode(other)
    return int(_LIBC.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)) == 0


def _mend(place: Place) -> None:
    """Make anew what root has written over while it stood in the other one's place."""
    for name in FILES:
        with suppress(OSError):
            if not (place.data / f"{name}.link").is_symlink():
                (place.data / f"{name}.link").unlink(missing_ok=True)
                (place.data / f"{name}.link").symlink_to(place.victim / name)
            if not (place.data / f"{name}.fifo").is_fifo():
                (place.data / f"{name}.fifo").unlink(missing_ok=True)
                os.mkfifo(place.data / f"{name}.fifo")
