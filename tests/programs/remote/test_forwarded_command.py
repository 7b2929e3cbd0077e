"""pgdyno that is started by pgdyno, in a directory of somebody else."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pgdyno import __version__
from pgdyno.base.errors import LockHeldError, MeasurementError
from pgdyno.model.cells.cell import TypedAt
from pgdyno.remote.forwarded_command import CarriedCommand, allowed_cpus, run_pgdyno, start_pgdyno

PLANTED = "raise SystemExit('code of the working directory runs')\n"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory, with modules that have the names of pgdyno's and Python's own."""
    (tmp_path / "pgdyno").mkdir()
    for name in ("pgdyno/__init__.py", "pgdyno/__main__.py", "typing.py", "click.py"):
        (tmp_path / name).write_text(PLANTED)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("planted")
def test_a_started_pgdyno_runs_no_code_of_the_working_directory() -> None:
    process = start_pgdyno(["--version"])
    output, errors = process.communicate(timeout=60)
    assert (output.decode(), errors.decode()) == (f"pgdyno, version {__version__}\n", "")


@pytest.mark.usefixtures("planted")
def test_a_carried_command_runs_no_code_of_the_working_directory() -> None:
    program = Path(sysconfig.get_path("scripts"), "pgdyno")
    line = CarriedCommand(("--version",), TypedAt("hosts.toml", "ssh db1 pgdyno")).line()
    with subprocess.Popen(
        [program, "cell", "carried", "greeting"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line)
        process.stdin.flush()
        output = process.stdout.read()
    assert output.decode().splitlines()[2:] == [f"pgdyno, version {__version__}"]


SAYS_AND_ENDS = "import sys; print('out'); print({!r}, file=sys.stderr); sys.exit({})"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Have Python run the words in pgdyno's place; returns the processes."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(words: list[str]) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", *words]
        processes.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return processes[-1]

    monkeypatch.setattr("pgdyno.remote.forwarded_command.start_pgdyno", start)
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
