"""A build that was interrupted goes on with the stage that was."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import STAGES, build, interrupted, request, stages_of

from pgdyno.base.errors import InterruptedByUserError, ServerCrashedError
from pgdyno.cli.build import command


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("at", STAGES[:-1])
def test_a_build_that_was_interrupted_goes_on_where_it_stopped(at: str, tree: Path) -> None:
    with interrupted(at), pytest.raises(KeyboardInterrupt):
        build(request(tree), Remembered())
    said = Remembered()
    manifest = build(request(tree), said)
    stages = stages_of(said)
    assert stages == STAGES[STAGES.index(at) :]
    assert manifest.optimised is not None
    assert manifest.optimised.objects == 1


@pytest.mark.usefixtures("plain")
def test_one_that_was_killed_at_its_very_end_is_there(tree: Path, home: Path) -> None:
    with interrupted("install"), pytest.raises(KeyboardInterrupt):
        build(request(tree), Remembered())
    said = Remembered()
    manifest = build(request(tree), said)
    assert said.steps == [f"{manifest.name} already exists"]
    assert list((home / "builds").glob("built-*")) == []


@pytest.mark.usefixtures("plain")
def test_a_server_that_fails_in_training_ends_the_build_which_goes_on_from_there(tree: Path) -> None:
    def crash(*_: object) -> None:
        raise ServerCrashedError("the server of training ended by itself")

    with pytest.raises(ServerCrashedError, match="the server of training ended by itself"):
        build(request(tree), Remembered(), train=crash)
    said = Remembered()
    assert build(request(tree), said).server_version == "18.6"
    assert stages_of(said) == STAGES[STAGES.index("train") :]


def test_whoever_interrupts_a_build_is_told_that_it_goes_on(tree: Path) -> None:
    arguments = ["--source", str(tree), "--recipe", "o2", "--compiler", "gcc"]
    with interrupted("configure"):
        done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, InterruptedByUserError)
    assert str(done.exception) == (
        "interrupted\nHINT:  finished stages are kept: the same command resumes at the interrupted stage"
    )
