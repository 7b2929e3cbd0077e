"""Root's passwords are not for whoever listens where another user's data directory says."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.base.errors import ConnectionFailedError
from pgdyno.postgres.inspection.connection_by_directory import connect_as_owner
from pgdyno.postgres.server import Postmaster

pytestmark = pytest.mark.root

PORT = 5432
CLEAR_TEXT, MD5 = struct.pack("!ii", 8, 3), struct.pack("!ii4s", 12, 5, b"salt")
SASL = struct.pack("!ii", 24, 10) + b"SCRAM-SHA-256\0\0\0"


class AskingServer:
    """A server that asks everybody for a password, and keeps the answers."""

    def __init__(self, place: Path, question: bytes) -> None:
        self.answers: list[bytes] = []
        self._question = question
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{place}/.s.PGSQL.{PORT}")
        shutil.chown(f"{place}/.s.PGSQL.{PORT}", "nobody")
        self._listening.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed: the test is over
                return
            with connection:
                connection.recv(4096)
                connection.sendall(b"R" + self._question)
                self.answers.append(connection.recv(4096))

    def close(self) -> None:
        """End the thread: closing alone would not wake it."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A directory of nobody's, and a password of root's for all servers."""
    place = Path(tempfile.mkdtemp(prefix="pgdyno-asking-"))
    shutil.chown(place, "nobody")
    passwords = tmp_path / "pgpass"
    passwords.write_text("*:*:*:*:s3cret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    yield place
    shutil.rmtree(place)


@pytest.fixture(params=[CLEAR_TEXT, MD5, SASL], ids=["clear", "md5", "scram"])
def server(place: Path, request: pytest.FixtureRequest) -> Iterator[AskingServer]:
    server = AskingServer(place, request.param)
    yield server
    server.close()


@pytest.mark.parametrize("variable", ["PGUSER", "LANG"])
def test_a_password_of_roots_file_is_not_sent(
    place: Path,
    server: AskingServer,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    variable: str,
) -> None:
    monkeypatch.setenv(variable, "C")
    with pytest.raises(ConnectionFailedError) as caught:
        connect_as_owner(place, Postmaster(1, PORT, str(place), None), "nobody")
    assert b"".join(server.answers) == b""
    assert caught.value.hint is not None
    assert "pgpass" not in caught.value.hint
    assert capfd.readouterr().err == "", "libpq itself warns of a password file that is none"


@pytest.mark.parametrize("question", [CLEAR_TEXT, MD5])
def test_a_password_of_the_environment_is_sent_by_scram_only(
    place: Path, monkeypatch: pytest.MonkeyPatch, question: bytes
) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    server = AskingServer(place, question)
    with pytest.raises(ConnectionFailedError) as caught:
        connect_as_owner(place, Postmaster(1, PORT, str(place), None), "nobody")
    server.close()
    assert b"".join(server.answers) == b""
    assert "connect with --dsn, and list the accepted methods" in str(caught.value.hint)
