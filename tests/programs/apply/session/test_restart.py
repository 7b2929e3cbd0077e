"""A restart that has begun is seen to its end, whatever the user presses meanwhile."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.fix_restarts import LIMIT_S, in_vain

from pgdyno.apply.session.restart import CommandRestarter, command_restarter
from pgdyno.base.errors import ConnectionFailedError, ServerStartError, UsageError

BEFORE = 1_795_219_200.0
INTERRUPTED = """
import os, pathlib, signal, sys
os.kill(os.getppid(), int(sys.argv[2]))
pathlib.Path(sys.argv[1]).touch()
"""
"""Stands for a restart during which the user interrupts pgdyno."""


class Server:
    """Says that it started again once ``mark`` exists and it was asked ``polls`` times."""

    def __init__(self, mark: Path, polls: int = 0) -> None:
        self.mark = mark
        self.polls = polls

    def __call__(self) -> Any:
        if self.mark.exists():
            self.polls -= 1
            if self.polls >= 0:
                raise ConnectionFailedError("could not connect", detail="the server is starting up")
        return nullcontext(self)

    @property
    def started(self) -> float:
        return BEFORE + self.mark.exists()


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.apply.session.query.run", lambda server, *_: [(server.started,)])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_takes_effect_when_the_server_is_back(tmp_path: Path, number: signal.Signals) -> None:
    found = signal.signal(number, signal.default_int_handler)
    try:
        mark = tmp_path / "restarted"
        server = Server(mark, polls=2)
        command = (sys.executable, "-c", INTERRUPTED, str(mark), str(int(number)))
        with pytest.raises(KeyboardInterrupt):
            CommandRestarter(command, server, limit_s=120.0).restart()
        assert mark.exists()
        assert server.polls < 0
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, found)


def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    found = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        mark = tmp_path / "restarted"
        command = (sys.executable, "-c", INTERRUPTED, str(mark), str(int(signal.SIGHUP)))
        CommandRestarter(command, Server(mark, polls=2), limit_s=120.0).restart()
        assert mark.exists()
    finally:
        signal.signal(signal.SIGHUP, found)


def test_without_an_interrupt_the_restart_just_returns(tmp_path: Path) -> None:
    mark = tmp_path / "restarted"
    CommandRestarter(("touch", str(mark)), Server(mark)).restart()
    assert mark.exists()


def test_why_the_server_is_not_back_is_said(tmp_path: Path) -> None:
    mark = tmp_path / "restarted"
    with in_vain(), pytest.raises(ServerStartError) as caught:
        CommandRestarter(("touch", str(mark)), Server(mark, polls=1000), limit_s=LIMIT_S).restart()
    assert caught.value.message == "the server was not up within 60 s of its restart"
    assert caught.value.detail == "could not connect: the server is starting up"
    assert caught.value.hint == "see the server's log for the reason"


def test_a_server_that_still_runs_was_not_restarted(tmp_path: Path) -> None:
    with in_vain(), pytest.raises(ServerStartError) as caught:
        CommandRestarter(("true",), Server(tmp_path / "never"), limit_s=LIMIT_S).restart()
    assert caught.value.detail == "the old server still runs"


def test_an_empty_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        command_restarter([], Server(tmp_path))
    assert caught.value.hint == "for example --restart-command 'systemctl restart postgresql'"
