"""A client that keeps every byte that a server sends, and when it is used."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.fix_servers import RealServer

PATCHED_BUILD = [
    pytest.mark.skipif(
        os.environ.get("PGDYNO_PATCHED_BUILD") != "1",
        reason="requested: make test-patches",
    ),
    pytest.mark.timeout(5400),
    pytest.mark.server,
]

TEXT, BINARY = 0, 1
_LIMIT_S = 60.0
_VERSION = 3 << 16
_CANCEL = 1234 << 16 | 5678


@dataclass
class Wire:
    """A connection to a server by its socket, where every role is trusted."""

    server: RealServer
    database: str = "postgres"
    encoding: str = "UTF8"

    def __post_init__(self) -> None:
        self.socket = self._connected()
        words = ("user", "postgres", "database", self.database, "client_encoding", self.encoding)
        body = struct.pack("!i", _VERSION) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
        self.send(struct.pack("!i", len(body) + 4) + body)
        self.key = b""
        for kind, content in self.messages():
            if kind == b"K":
                self.key = content

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def message(self) -> tuple[bytes, bytes]:
        """Return the next message: its type, and its content. Raises: EOFError."""
        head = self._read(5)
        return head[:1], self._read(struct.unpack("!i", head[1:])[0] - 4)

    def messages(self) -> list[tuple[bytes, bytes]]:
        """Return all messages up to the server's readiness for the next question."""
        found: list[tuple[bytes, bytes]] = []
        while not found or found[-1][0] != b"Z":
            found.append(self.message())
        return found

    def query(self, statement: bytes) -> list[tuple[bytes, bytes]]:
        """Ask by the simple protocol."""
        self.send(framed(b"Q", statement + b"\0"))
        return self.messages()

    def execute(self, statement: bytes, form: int, rows: int = 0) -> list[tuple[bytes, bytes]]:
        """Ask by the extended protocol, for results of one format, in portions of ``rows``; 0: at once."""
        self.send(extended(statement, form, rows))
        return self.messages()

    def cancel(self) -> None:
        """Ask for an end of the statement under way, by a connection of its own."""
        with self._connected() as other:
            other.sendall(struct.pack("!ii", 16, _CANCEL) + self.key)
            other.recv(1)

    def close(self) -> None:
        """Leave."""
        self.socket.close()

    def _connected(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        found.settimeout(_LIMIT_S)
        found.connect(str(self.server.socket_directory / f".s.PGSQL.{self.server.port}"))
        return found

    def _read(self, length: int) -> bytes:
        read = b""
        while len(read) < length:
            part = self.socket.recv(length - len(read))
            if not part:
                raise EOFError
            read += part
        return read


def framed(kind: bytes, body: bytes) -> bytes:
    """Return a message."""
    return kind + struct.pack("!i", len(body) + 4) + body


def extended(statement: bytes, form: int, rows: int = 0) -> bytes:
    """Return the messages of a statement by the extended protocol; a second Execute gets the rest."""
    execute = framed(b"E", b"\0" + struct.pack("!i", rows))
    return b"".join(
        [
            framed(b"P", b"\0" + statement + b"\0" + struct.pack("!h", 0)),
            framed(b"B", b"\0\0" + struct.pack("!hhhh", 0, 0, 1, form)),
            framed(b"D", b"P\0"),
            *[execute] * (2 if rows else 1),
            framed(b"S", b""),
        ]
    )


def rows_of(messages: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the contents of rows."""
    return [content for kind, content in messages if kind == b"D"]
