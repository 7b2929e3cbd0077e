"""What ``accelerate`` says of a build that is not there, and when it makes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.fix_builds import MANIFEST
from tests.fix_progress import Remembered
from tests.golden.synthetic import plan

from pgdyno.accelerate.build_advice import build_advice, make_build
from pgdyno.base.errors import InterruptedByUserError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.needs.prerequisites import Need, missing_error
from pgdyno.builds.product.manifest import Manifest
from pgdyno.cli.main import cli
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.plans.plan import Layer
from pgdyno.model.plans.recipe import KnownBuild

ALL = (Layer.APPLICATION, Layer.COMPILER)
BUILT = KnownBuild("built-1", "18.6", "gcc", "lto+pgo", (), 428)


pytestmark = pytest.mark.usefixtures("builds_place")


def nothing_is_missing() -> str:
    return ""


def conditions(bin_directory: str = "/opt/pg/bin") -> Conditions:
    installation: Any = SimpleNamespace(major=18, version="18.6", bin_directory=Path(bin_directory))
    return Conditions(installation, {}, Design())


def test_the_command_the_time_and_the_gain_are_said() -> None:
    advice = build_advice(conditions(), ALL, plan(), nothing_is_missing)
    assert advice is not None
    assert advice.sentence == (
        "A profile-guided build takes about 20 more minutes and gains about +30\xa0% (docs/guides/build.md): "
        "pgdyno build --source debian:18, or --build; the next run uses it automatically."
    )


def test_what_is_missing_is_said_instead() -> None:
    lacking = missing_error([Need("bison", "bison"), Need("flex", "flex")])
    advice = build_advice(conditions(), ALL, plan(), lambda: f"{lacking.detail}; {lacking.hint}")
    assert advice is not None
    assert advice.sentence == (
        "A profile-guided build could gain about +30\xa0% (docs/guides/build.md); it cannot be made "
        "here yet: missing: bison, flex; apt-get install bison flex."
    )


def test_nothing_is_said_where_a_build_was_measured_or_is_in_use_or_not_asked_for(
    install_build: Callable[[Manifest], Path],
) -> None:
    line = plan().lines[0]
    moved = replace(line, change=replace(line.change, kind="server", key="server", value="built-1"))
    assert build_advice(conditions(), ALL, replace(plan(), lines=(moved,))) is None
    assert build_advice(conditions(), ALL[:1], plan()) is None
    built = install_build(MANIFEST)
    assert build_advice(conditions(str(built / "bin")), ALL, plan()) is None
    assert build_advice(conditions("/usr/bin"), ALL, plan(), nothing_is_missing) is not None


class Asked:
    """Remembers which builds were asked for, and makes none."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def __call__(self, request: BuildRequest, _: Progress) -> None:
        self.sources.append(request.source)


def test_a_build_is_made_once() -> None:
    asked = Asked()
    make_build(conditions(), Remembered(), (), asked)
    assert asked.sources == ["debian:18"]
    make_build(conditions(), Remembered(), (BUILT,), asked)
    assert len(asked.sources) == 1


@pytest.mark.parametrize(("version", "is_made"), [("18.5", True), ("18.10", False), ("17.9", True)])
def test_an_older_build_does_not_count(version: str, *, is_made: bool) -> None:
    asked = Asked()
    make_build(conditions(), Remembered(), (replace(BUILT, version=version),), asked)
    assert bool(asked.sources) is is_made


def test_an_interrupted_build_goes_on_by_the_same_command() -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedByUserError) as caught:
        make_build(conditions(), Remembered(), (), stopped)
    assert caught.value.hint == (
        "finished stages are kept: the same command resumes at the interrupted stage"
    )


ATTACHED = """--build requires scratch servers, but --dsn names a running server
HINT:  pgdyno build makes a build, and pgdyno switch runs the server with it"""
PATCHED_ATTACHED = """--patched requires scratch servers, but --dsn names a running server
HINT:  pgdyno switch --patched runs the server with such a build"""
LEFT_OUT = """{} requires the compiler layer, which --layers excludes
HINT:  add compiler to --layers"""
NO_PATCHED = """no verified build of PostgreSQL 18 with patches is installed
HINT:  pgdyno build --source debian:18 --patch NAME makes one (docs/guides/build.md)"""


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--build", "--dsn", "service=production"], ATTACHED),
        (["--patched", "--dsn", "service=production"], PATCHED_ATTACHED),
        (["--build", "--embedded", "--layers", "application"], LEFT_OUT.format("--build")),
        (["--patched", "--embedded", "--layers", "application"], LEFT_OUT.format("--patched")),
        (["--patched", "--embedded", "--layers", "compiler"], NO_PATCHED),
    ],
)
def test_a_build_that_nothing_would_use_is_refused(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["accelerate", *arguments])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == said
