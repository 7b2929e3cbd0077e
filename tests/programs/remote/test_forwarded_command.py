"""pgdyno that is started by pgdyno, in a directory of somebody else."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from pgdyno import __version__
from pgdyno.model.cells.cell import TypedAt
from pgdyno.remote.forwarded_command import CarriedCommand
from pgdyno.remote.pgdyno_command import start_pgdyno

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
