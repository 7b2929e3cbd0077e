"""What ``accelerate`` says of a build that is not there, and when it makes one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fix_progress import Remembered
from tests.golden.synthetic import plan

from pgdyno.app.acceleration import build_first as accelerate_build
from pgdyno.app.acceleration.build_first import build_advice, make_build
from pgdyno.app.building.build import BuildRequest
from pgdyno.app.measuring.measure import Conditions
from pgdyno.cli.main import cli
from pgdyno.model.errors import InterruptedByUserError, UsageError
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.plans.builds import KnownBuild
from pgdyno.model.plans.plan import Layer
from pgdyno.toolchain.host.prerequisites import Need

ALL = (Layer.APPLICATION, Layer.COMPILER)
BUILT = KnownBuild("built-1", "18.6", "gcc", "lto+pgo", (), 428)


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with all that a build takes, and none made."""
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(accelerate_build, "find_bolt", lambda: None)
    monkeypatch.setattr(accelerate_build, "missing_programs", list)
    monkeypatch.setattr(accelerate_build, "missing_headers", lambda _: [])
    monkeypatch.setattr(accelerate_build, "find_compiler", lambda *_: SimpleNamespace(cc="gcc"))
    monkeypatch.setattr(accelerate_build, "optimised_builds", lambda _: ())
    monkeypatch.setattr(accelerate_build, "known_builds", lambda *_: ())


def conditions(bin_directory: str = "/opt/pg/bin") -> Conditions:
    installation: Any = SimpleNamespace(major=18, version="18.6", bin_directory=Path(bin_directory))
    return Conditions(installation, {}, Design())


def test_the_command_the_time_and_the_gain_are_said() -> None:
    advice = build_advice(conditions(), ALL, plan())
    assert advice is not None
    assert advice.sentence == (
        "A build with a profile takes about 26 more minutes, for about +30% (docs/guides/build.md): "
        "pgdyno build --source debian:18, or --build; the next run uses it without asking."
    )


def test_what_is_missing_is_said_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = [Need("bison", "bison"), Need("flex", "flex")]
    monkeypatch.setattr(accelerate_build, "missing_programs", lambda: lacking)
    advice = build_advice(conditions(), ALL, plan())
    assert advice is not None
    assert advice.sentence == (
        "A build with a profile could bring about +30% (docs/guides/build.md); it cannot be made here yet: "
        "missing: bison, flex; apt-get install bison flex."
    )


def test_nothing_is_said_where_a_build_was_measured_or_is_in_use_or_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = plan().lines[0]
    moved = replace(line, change=replace(line.change, kind="server", key="server", value="built-1"))
    assert build_advice(conditions(), ALL, replace(plan(), lines=(moved,))) is None
    assert build_advice(conditions(), ALL[:1], plan()) is None
    monkeypatch.setattr(accelerate_build, "optimised_builds", lambda _: [(Path("/opt/pg"), None)])
    assert build_advice(conditions(), ALL, plan()) is None
    assert build_advice(conditions("/usr/bin"), ALL, plan()) is not None


def test_a_build_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[BuildRequest] = []
    monkeypatch.setattr(accelerate_build, "build", lambda request, _: asked.append(request))
    make_build(conditions(), Remembered())
    assert [one.source for one in asked] == ["debian:18"]
    monkeypatch.setattr(accelerate_build, "known_builds", lambda *_: (BUILT,))
    make_build(conditions(), Remembered())
    assert len(asked) == 1


@pytest.mark.parametrize(("version", "is_made"), [("18.5", True), ("18.10", False), ("17.9", True)])
def test_an_older_build_does_not_count(
    version: str, monkeypatch: pytest.MonkeyPatch, *, is_made: bool
) -> None:
    asked: list[BuildRequest] = []
    monkeypatch.setattr(accelerate_build, "build", lambda request, _: asked.append(request))
    monkeypatch.setattr(accelerate_build, "known_builds", lambda *_: (replace(BUILT, version=version),))
    make_build(conditions(), Remembered())
    assert bool(asked) is is_made


def test_an_interrupted_build_goes_on_by_the_same_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(accelerate_build, "build", stopped)
    with pytest.raises(InterruptedByUserError) as caught:
        make_build(conditions(), Remembered())
    assert caught.value.hint == (
        "what is done is kept: the same command goes on with the stage that was interrupted"
    )


ATTACHED = """--build concerns scratch servers, and --dsn names a running one
HINT:  pgdyno build makes a build, and pgdyno switch lets the server run from it"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--dsn", "service=production"], ATTACHED),
        (
            ["--embedded", "--layers", "application"],
            "--build makes what --layers leaves out\nHINT:  add compiler to --layers",
        ),
    ],
)
def test_a_build_that_nothing_would_use_is_refused(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["accelerate", "--build", *arguments])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == said
