"""pgdyno as a program of its own: its end, its last words, and who does not wait for it any more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.remote import pgdyno_command
from pgdyno.remote.pgdyno_command import allowed_cpus, run_pgdyno

SAYS_AND_ENDS = "import sys; print('out'); print({!r}, file=sys.stderr); sys.exit({})"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Have Python run the words in pgdyno's place; returns the processes."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(words: list[str]) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", *words]
        processes.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return processes[-1]

    monkeypatch.setattr(pgdyno_command, "start_pgdyno", start)
    return processes


def run(program: str, limit_s: float = 60.0, *, is_wanted: bool = True) -> str:
    return run_pgdyno([program], limit_s, lambda: is_wanted, worker_cpus=allowed_cpus())


@pytest.mark.usefixtures("started")
def test_its_output_is_returned() -> None:
    assert run(SAYS_AND_ENDS.format("well", 0)) == "out\n"


@pytest.mark.usefixtures("started")
def test_a_failure_has_its_last_words() -> None:
    with pytest.raises(MeasurementError) as caught:
        run(SAYS_AND_ENDS.format("no space", 1))
    assert str(caught.value) == "the command exited with code 1\nDETAIL:  no space"


@pytest.mark.usefixtures("started")
def test_a_machine_on_which_another_one_measures_is_told_apart() -> None:
    with pytest.raises(LockHeldError, match="another pgdyno is measuring on the machine"):
        run(SAYS_AND_ENDS.format("pgdyno: ERROR:  another pgdyno is measuring on this host  (PGD-205)", 4))


def test_who_takes_too_long_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(MeasurementError) as caught:
        run("import time; time.sleep(60)", 2.0)
    assert caught.value.message == "the command did not end within 2\N{NO-BREAK SPACE}s"
    assert caught.value.hint == "increase limit in fleet.toml"
    assert started[0].poll() is not None


def test_who_is_not_waited_for_is_interrupted(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(MeasurementError, match="the command was cancelled: its result is no longer wanted"):
        run("import time; time.sleep(60)", is_wanted=False)
    assert started[0].poll() is not None
