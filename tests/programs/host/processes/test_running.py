"""Programs that fetch and build: their environment, their limits, and what remains of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.host.processes.running import capture, clean_environment, is_installed, output_of, run_logged


def test_flags_of_the_caller_do_not_reach_a_build(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CFLAGS", "LDFLAGS", "COPT", "MAKEFLAGS", "LC_ALL"):
        monkeypatch.setenv(name, "of the caller")
    environment = clean_environment(PGPORT="1")
    assert environment["PATH"] == os.environ["PATH"]
    fixed = {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive", "PGPORT": "1"}
    kept = environment.keys() - fixed.keys()
    assert kept <= {"PATH", "HOME", "TMPDIR", "USER", "LOGNAME"}
    assert environment == {name: os.environ[name] for name in kept} | fixed


def test_a_program_is_installed_if_the_path_has_it() -> None:
    assert is_installed("sh")
    assert not is_installed("no-such-program")


def test_a_failure_shows_the_last_lines_of_its_errors() -> None:
    script = "i=1; while [ $i -le 14 ]; do echo line $i >&2; i=$((i+1)); done; exit 3"
    with pytest.raises(InstallationError) as caught:
        output_of(["sh", "-c", script])
    assert caught.value.message == '"sh" failed with status 3'
    assert caught.value.detail == "\n         ".join(f"line {number}" for number in range(3, 15))
    assert output_of(["sh", "-c", "echo out; echo err >&2"]) == "out\n"


def test_a_program_beyond_its_limit_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    with pytest.raises(InstallationError) as caught:
        capture(["sh", "-c", script], limit_s=1)
    assert caught.value.message == '"sh -c" did not end within 1 s'
    assert caught.value.hint == "check the network connection and try again"
    state = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] in "ZX"


def test_a_long_program_appends_to_its_log_and_is_watched(tmp_path: Path) -> None:
    log, watched = tmp_path / "log", list[int]()
    log.write_text("before\n")
    status = run_logged(
        ["sh", "-c", "echo out; echo err >&2; sleep 1.5; exit 4"],
        cwd=tmp_path,
        log=log,
        limit_s=60,
        watch=lambda: watched.append(1),
    )
    assert (status, log.read_text()) == (4, "before\nout\nerr\n")
    assert watched
    assert run_logged(["sleep", "600"], cwd=tmp_path, log=log, limit_s=0.1, watch=lambda: None) is None
