"""How the end of a generator is judged, on real processes."""

from __future__ import annotations

import signal
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.process import Command, LoadProcess, run_to_end


def stopped(script: str, directory: Path, clean_statuses: tuple[int, ...] = (0,)) -> LoadProcess:
    """Run a shell script as a generator until it says that it is ready, and stop it."""
    load = LoadProcess(
        Command(("sh", "-c", script), signal.SIGTERM, clean_statuses=clean_statuses),
        list,
        directory / "log",
        directory / "output",
    )
    load.start()
    while "ready" not in (directory / "output").read_text():
        load.require_running()
    load.stop()
    return load


def test_a_run_that_ends_as_agreed_counts(tmp_path: Path) -> None:
    with does_not_raise():
        stopped("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", tmp_path).require_clean_end()
        ended_by_signal = "echo ready; exec sleep 60"
        stopped(ended_by_signal, tmp_path, clean_statuses=(0, -signal.SIGTERM)).require_clean_end()


def test_a_generator_gets_nothing_of_pgdynos_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    command = Command(("/usr/bin/env",), signal.SIGTERM, {"PGPASSWORD": "of the load"})
    run_to_end(command, list, tmp_path / "output", timeout_s=120)
    assert (tmp_path / "output").read_text() == "PGPASSWORD=of the load\n"


def test_clients_that_aborted_on_the_way_are_noticed_by_the_exit_status(tmp_path: Path) -> None:
    said = "client 3 aborted: canceling statement due to statement timeout"
    load = stopped(f"trap 'echo {said}; exit 2' TERM; echo ready; while :; do sleep 0.01; done", tmp_path)
    with pytest.raises(GeneratorFailedError) as caught:
        load.require_clean_end()
    assert caught.value.message == "sh did not end cleanly: its exit status is 2"
    assert said in (caught.value.detail or "")
