"""A peer that stands before a real PostgreSQL and alters what it says.

The server's own words lead a client deep into its work; a behaviour takes each message of the server, in
order, and yields what the client gets instead. Version 3 of the protocol, over a Unix socket.

Source: PostgreSQL, chapters "Message Flow" and "Message Formats".
"""

from __future__ import annotations

import contextlib
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Self

PORT = 5432
"""A part of the socket's name only."""
_CHUNK_BYTES = 1 << 16
_HEADER = struct.Struct("!ci")


@dataclass(frozen=True)
class Message:
    """A message of the server; ``answers`` is how many it completed before, on any connection."""

    tag: bytes
    body: bytes
    answers: int = 0

    def encoded(self) -> bytes:
        """Return it as it travels."""
        return _HEADER.pack(self.tag, len(self.body) + 4) + self.body


class Instead(Enum):
    """What may be done instead of sending bytes."""

    SILENCE = "say nothing for ever"
    CLOSE = "close the connection"


Sent = bytes | Instead
Behaviour = Callable[[Message], Iterable[Sent]]
"""Of one connection: it may remember what came before."""


class Peer:
    """Listens on a Unix socket of its own, and talks to the real server for each client."""

    def __init__(self, upstream: Path, behaviour: Callable[[], Behaviour]) -> None:
        """Take the socket of the real server, and what makes a behaviour for each connection."""
        self._upstream, self._behaviour = upstream, behaviour
        self._directory = tempfile.TemporaryDirectory(prefix="pgdyno-peer-")
        Path(self._directory.name).chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        path = Path(self._directory.name) / f".s.PGSQL.{PORT}"
        self._listener.bind(str(path))
        path.chmod(0o777)
        self._listener.listen(64)
        self._is_over = threading.Event()
        self._answers = 0
        self.has_acted = False

    @property
    def dsn(self) -> str:
        """How a client reaches it."""
        return f"host={self._directory.name} port={PORT} user=postgres dbname=postgres"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._directory.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            try:
                server.connect(str(self._upstream))
                threading.Thread(target=_copy, args=(client, server), daemon=True).start()
                self._alter(server, client)
            except OSError:
                return  # one of the two has gone

    def _alter(self, server: socket.socket, client: socket.socket) -> None:
        behaviour = self._behaviour()
        for message in self._messages(server):
            is_told = False
            for sent in behaviour(message):
                if is_told or sent != message.encoded():
                    self.has_acted = True
                is_told = True
                if sent is Instead.CLOSE or self._is_over.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return
                if sent is Instead.SILENCE:
                    self._is_over.wait()
                    return
                assert isinstance(sent, bytes)
                client.sendall(sent)
            self.has_acted |= not is_told

    def _messages(self, server: socket.socket) -> Iterator[Message]:
        with server.makefile("rb") as stream:
            while header := stream.read(_HEADER.size):
                tag, length = _HEADER.unpack(header)
                yield Message(tag, stream.read(length - 4), self._answers)
                self._answers += tag == b"Z"


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):  # one of the two has gone
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
