"""A study (with an option), a workload, a meter, a lever: each is one file, and everything else follows."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from chores.new_lever import main as new_lever
from chores.new_lever import text_of
from click.testing import CliRunner
from tests.fix_settings import host_of, server_of

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli
from pgdyno.cli.run import command
from pgdyno.measure import meters
from pgdyno.measure.bundled_study import Sizing
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import make_plan
from pgdyno.plan.levers._contract import HEADINGS
from pgdyno.studies import bundled as studies
from pgdyno.workload import bundled as workloads

STUDY = '''
"""Tides: an example."""

from pgdyno.model.experiments.study import Study
from pgdyno.measure.bundled_study import BundledStudy, Option, last


def study(context):
    """Return one variant."""
    return Study("tides", "How high is the water?", (context.baseline,), context.workloads, context.design)


MOON = Option("moon", "which phase to wait for.", last, metavar="PHASE")
STUDY = BundledStudy("the tides", study, options=(MOON,))
'''
WORKLOAD = '''
"""Waves: an example."""

from dataclasses import replace

from pgdyno.workload.bundled.pgbench_select import WORKLOAD as SELECT

WORKLOAD = replace(SELECT, name="waves")
'''
METER = '''
"""Foam: an example."""

from pgdyno.measure.meters._contract import Meter, per_transaction

METER = Meter("foam", "the beach")
value = per_transaction


def read(context):
    """Return a counter."""
    return (0,)
'''
LEVER = '''
"""sandbank: an example."""

from pgdyno.plan.levers._contract import Layer, Lever, Maturity, Risk

LEVER = Lever("sandbank", "an example", Layer.APPLICATION, Risk.SAFE, Maturity.PREVIEW, settings=())


def plan(ctx):
    """Leave it."""
    return LEVER.skip("the tide is out")
'''


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory whose files belong to all catalogues, as long as the test runs."""
    layer = importlib.import_module("pgdyno.plan.levers.application")
    for package in (studies, workloads, meters, layer):
        directory = tmp_path / package.__name__
        directory.mkdir()
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(directory)])
    monkeypatch.delitem(sys.modules, "pgdyno.cli.run", raising=False)  # which knows the options of before
    levers.load.cache_clear()
    yield tmp_path
    levers.load.cache_clear()
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def run(*arguments: str) -> str:
    """Return what ``pgdyno run`` says."""
    return " ".join(CliRunner().invoke(cli, ["run", *arguments], terminal_width=200).output.split())


def test_a_study_brings_its_options_to_the_command_line(added: Path) -> None:
    (added / "pgdyno.studies.bundled/tides.py").write_text(STUDY)
    assert "tides the tides" in run("--list")
    assert "--moon PHASE tides: which phase to wait for." in run("--help")
    result = CliRunner().invoke(cli, ["run", "loop", "--moon", "full"], standalone_mode=False)
    assert isinstance(result.exception, UsageError)
    assert result.exception.message == "the study loop takes no --moon"
    for given, recorded in (((), {}), (("new",), {"moon": "new"}), (("full", "new"), {"moon": "new"})):
        asked = Sizing({"moon": given})
        assert studies.load()["tides"].recorded_options(asked) == recorded


def test_a_workload_can_be_named(added: Path) -> None:
    (added / "pgdyno.workload.bundled/waves.py").write_text(WORKLOAD)
    assert workloads.load()["waves"].name == "waves"


def test_a_meter_is_read(added: Path) -> None:
    (added / "pgdyno.measure.meters/foam.py").write_text(METER)
    assert "foam" in {meter.METER.metric for meter in meters.load()}


def test_a_lever_is_planned(added: Path) -> None:
    (added / "pgdyno.plan.levers.application/sandbank.py").write_text(LEVER)
    skipped = {one.lever: one.reason for one in make_plan(host_of(), server_of(18)).skipped}
    assert skipped["sandbank"] == "the tide is out"


def test_the_file_of_a_new_lever_is_one_that_plans_nothing_yet(added: Path) -> None:
    (added / "pgdyno.plan.levers.application/wading.py").write_text(text_of("wading", "hash_mem_multiplier"))
    skipped = {one.lever: one.reason for one in make_plan(host_of(), server_of(18)).skipped}
    assert skipped["wading"] == "no rule yet"
    documentation = levers.load()["wading"].page
    positions = [documentation.find(f"\n{heading}:\n    ") for heading in HEADINGS]
    assert -1 not in positions
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (["Wading", "jit"], '"Wading" is not the name of a lever'),
        (["wading", ""], '"" is not the name of a setting'),
    ],
)
def test_a_new_lever_without_a_name_or_setting_is_refused(
    arguments: list[str], refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["new_lever", *arguments])
    with pytest.raises(SystemExit, match=refusal):
        new_lever()


def test_options_of_studies_have_names_of_their_own_and_one_kind() -> None:
    parameters = command.get_params(click.Context(command))
    names = [option for one in parameters for option in one.opts if option.startswith("--")]
    assert [name for name in names if names.count(name) > 1] == []
    kinds: dict[str, set[tuple[bool, bool]]] = {}
    for study in studies.load().values():
        for option in study.options:
            kinds.setdefault(option.name, set()).add((option.is_flag, option.is_repeatable))
    assert [name for name, found in kinds.items() if len(found) > 1] == []
