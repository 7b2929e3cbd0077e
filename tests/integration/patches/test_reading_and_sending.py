"""A patched server reads whatever a client sends, and is interrupted as before, with fewer system calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.fix_servers import RealServer, running_server
from tests.integration.patches.wire import PATCHED_BUILD, TEXT, Wire, extended, framed, rows_of

pytestmark = PATCHED_BUILD

ONE = b"\x00\x01\x00\x00\x00\x011"  # a row with 1
TURNS = 40
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None or os.geteuid() != 0, reason="needs strace and root (apt install strace)"
)


def error_in(messages: list[tuple[bytes, bytes]]) -> bytes:
    """Return the SQLSTATE of an error."""
    (content,) = (content for kind, content in messages if kind == b"E")
    return next(part[1:] for part in content.split(b"\0") if part[:1] == b"C")


def ending_of(wire: Wire) -> bytes:
    """Return the SQLSTATE with which a server has ended a connection by itself."""
    kind, content = wire.message()
    with pytest.raises(EOFError):
        wire.message()
    wire.close()
    return error_in([(kind, content)])


def test_a_question_that_comes_byte_by_byte(patched: RealServer) -> None:
    wire = Wire(patched)
    for byte in framed(b"Q", b"SELECT 1\0"):
        wire.send(bytes([byte]))
        time.sleep(0.01)
    assert rows_of(wire.messages()) == [ONE]
    wire.close()


def test_many_questions_that_come_at_once(patched: RealServer) -> None:
    wire = Wire(patched)
    wire.send(extended(b"SELECT 1", TEXT) * 500)
    assert [rows_of(wire.messages()) for _ in range(500)] == [[ONE]] * 500
    wire.close()


def test_a_question_of_exactly_what_is_read_at_once(patched: RealServer) -> None:
    """A read that fills its room says nothing of what is left; the next one may find nothing."""
    wire = Wire(patched)
    for length in (8191, 8192, 8193, 16384):
        comment = b"--" + b"x" * (length - 5 - 1 - len(b"SELECT 1--"))
        message = framed(b"Q", b"SELECT 1" + comment + b"\0")
        assert len(message) == length
        wire.send(message)
        assert rows_of(wire.messages()) == [ONE]
    wire.close()


def test_rows_that_are_copied_in_come_in_pieces(patched: RealServer) -> None:
    wire = Wire(patched)
    wire.query(b"CREATE TEMPORARY TABLE pieces (i int)")
    wire.send(framed(b"Q", b"COPY pieces FROM STDIN\0"))
    assert wire.message()[0] == b"G"
    for number in range(30):
        data = framed(b"d", f"{number}\n".encode())
        for part in (data[:3], data[3:6], data[6:]):
            wire.send(part)
            time.sleep(0.002)
    wire.send(framed(b"c", b""))
    wire.messages()
    assert rows_of(wire.query(b"SELECT count(*) FROM pieces")) == [b"\x00\x01\x00\x00\x00\x0230"]
    wire.close()


def test_a_notification_reaches_a_client_that_asks_nothing(patched: RealServer) -> None:
    idle, other = Wire(patched), Wire(patched)
    idle.query(b"LISTEN news")
    time.sleep(0.2)
    other.query(b"NOTIFY news, 'here'")
    kind, content = idle.message()
    assert (kind, content[4:]) == (b"A", b"news\0here\0")
    assert rows_of(idle.query(b"SELECT 1")) == [ONE]
    for wire in (idle, other):
        wire.close()


def test_an_idle_session_can_be_terminated(patched: RealServer) -> None:
    idle, other = Wire(patched), Wire(patched)
    pid = rows_of(idle.query(b"SELECT pg_backend_pid()"))[0][6:]
    time.sleep(0.2)
    other.query(b"SELECT pg_terminate_backend(" + pid + b")")
    assert ending_of(idle) == b"57P01"
    other.close()


def test_a_session_can_be_terminated_in_the_middle_of_a_question(patched: RealServer) -> None:
    wire, other = Wire(patched), Wire(patched)
    pid = rows_of(wire.query(b"SELECT pg_backend_pid()"))[0][6:]
    wire.send(framed(b"Q", b"SELECT 1\0")[:8])
    time.sleep(0.2)
    other.query(b"SELECT pg_terminate_backend(" + pid + b")")
    assert ending_of(wire) == b"57P01"
    other.close()


def test_a_statement_can_be_cancelled_and_the_session_goes_on(patched: RealServer) -> None:
    wire = Wire(patched)
    wire.send(framed(b"Q", b"SELECT pg_sleep(60)\0"))
    time.sleep(0.2)
    wire.cancel()
    assert error_in(wire.messages()) == b"57014"
    assert rows_of(wire.query(b"SELECT 1")) == [ONE]
    wire.close()


@pytest.mark.parametrize(
    ("statements", "state"),
    [
        (["SET idle_session_timeout = '300ms'"], b"57P05"),
        (["SET idle_in_transaction_session_timeout = '300ms'", "BEGIN"], b"25P03"),
        (["SET transaction_timeout = '300ms'", "BEGIN"], b"25P04"),
    ],
)
def test_a_session_that_idles_too_long_is_ended(
    patched: RealServer, statements: list[str], state: bytes
) -> None:
    wire = Wire(patched)
    for statement in statements:
        wire.query(statement.encode())
    assert ending_of(wire) == state


def test_a_client_that_has_gone_leaves_no_backend(patched: RealServer) -> None:
    wire, other = Wire(patched), Wire(patched)
    pid = rows_of(wire.query(b"SELECT pg_backend_pid()"))[0][6:]
    wire.close()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{int(pid)}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{int(pid)}").exists()
    other.close()


def test_a_backend_ends_when_its_postmaster_has_died(patched: RealServer) -> None:
    with running_server(patched.bin_directory) as server:
        wire = Wire(server)
        wire.query(b"SELECT 1")
        os.kill(server.pid, 9)
        assert ending_of(wire) == b"57P01"


def calls(server: RealServer, statement: bytes, file: Path, name: str) -> list[str]:
    """Return the lines of one system call that a backend makes in some turns, with a pause before each."""
    wire = Wire(server)
    pid = rows_of(wire.query(b"SELECT pg_backend_pid()"))[0][6:].decode()
    argv = ["strace", "-p", pid, "-e", f"trace={name}", "-s", "0", "-o", str(file)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as tracing:
        assert tracing.stderr is not None
        assert "attached" in tracing.stderr.readline()
        for _ in range(TURNS):
            time.sleep(0.005)
            wire.query(statement)
        tracing.terminate()
    wire.close()
    return [line for line in file.read_text().splitlines() if line.startswith(name)]


@needs_strace
def test_nothing_is_read_in_vain(released: RealServer, patched: RealServer, tmp_path: Path) -> None:
    found = []
    for name, server in (("released", released), ("patched", patched)):
        lines = calls(server, b"SELECT 1", tmp_path / name, "recvfrom")
        found.append((len([one for one in lines if "EAGAIN" in one]), len(lines)))
    (failed, _), (failed_now, made_now) = found
    assert failed > TURNS // 2  # on a busy machine, the next question may be there first
    assert failed_now <= 1
    assert made_now <= TURNS + 2


@needs_strace
def test_an_answer_leaves_in_fewer_pieces(released: RealServer, patched: RealServer, tmp_path: Path) -> None:
    statement = b"SELECT repeat('x', 1000) FROM generate_series(1, 50)"
    sent = [
        len(calls(server, statement, tmp_path / name, "sendto"))
        for name, server in (("released", released), ("patched", patched))
    ]
    assert sent == [TURNS * 7, TURNS]  # 50,650 bytes, by 8,192 and by 65,536
