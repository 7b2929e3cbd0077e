"""The way between two hosts, measured by their runners."""

from __future__ import annotations

import socket

import pytest

from pgdyno.remote import _network_program


@pytest.mark.parametrize("asked", ["127.0.1.1", "198.51.100.7", "no-such-name.invalid"])
def test_it_listens_where_ssh_has_reached_it(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.9 50000 127.0.0.3 22")
    port = _network_program.listen({"address": asked, "port": 0})["port"]
    with _network_program.listeners.pop() as listener:
        assert listener.getsockname() == ("127.0.0.3", port)


def test_a_connection_that_trickles_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_network_program, "PROBE_LIMIT_S", 0.3)
    port = _network_program.listen({"address": "127.0.0.1", "port": 0})["port"]
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"right.")
        with pytest.raises(OSError, match=r"timed out|it takes more than 0\.3"):
            _network_program.accept({"token": "right"})
