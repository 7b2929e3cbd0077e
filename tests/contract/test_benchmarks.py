"""What the folder of every benchmark has, and that a new one is known by that alone."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import experiment

from pgdyno.cli.main import cli
from pgdyno.results.documents import comparison_document
from pgdyno.studies import bundled, views

FOLDERS = sorted(path.parent.name for path in Path(bundled.__path__[0]).glob("*/study.py"))
STUDY = '''
"""Regattas: an example."""

from pgdyno.measure.bundled_study import BundledStudy
from pgdyno.model.experiments.study import Study


def study(context):
    """Return one variant."""
    return Study("regatta", "Who wins?", (context.baseline,), context.workloads, context.design)


STUDY = BundledStudy("the regatta", study, passes=f"{__package__}.passes")
'''
PASSES = '''
"""Passes of the regatta."""


class PASSES:
    """Measures nothing."""
'''
VIEW = '''
"""The view of the regatta."""

NAME = "regatta"


def tables(experiment):
    """Yield nothing."""
    yield from ()


def page(experiment):
    """Return nothing."""
    return {}


def by_workload(experiment):
    """Return nothing."""
    return {}


def document(experiment):
    """Return the boats."""
    return {"boats": 8}
'''


def test_there_are_benchmarks() -> None:
    assert FOLDERS == ["insert_benchmark", "tpch"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_study_names_the_module_that_measures_it(folder: str) -> None:
    study = bundled.load()[folder.replace("_", "-")]
    assert study.passes is not None
    passes = importlib.import_module(study.passes).PASSES()
    assert callable(passes.checked)
    assert callable(passes.measured)


def test_views_have_names_and_values_of_their_own() -> None:
    found = views.views()
    assert len(found) == len(FOLDERS)
    assert len({view.NAME for view in found}) == len(found)
    for one, other in combinations(found, 2):
        assert not one.page(experiment()).keys() & other.page(experiment()).keys()


@pytest.fixture
def regatta(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A benchmark that is bundled as long as the test runs."""
    folder = tmp_path / "regatta"
    folder.mkdir()
    texts = {"__init__": '"""Regattas."""\n', "study": STUDY, "passes": PASSES, "view": VIEW}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.delitem(sys.modules, "pgdyno.cli.run", raising=False)  # which knows the options of before
    views.views.cache_clear()
    bundled.__path__.append(str(tmp_path))
    yield
    bundled.__path__.remove(str(tmp_path))
    views.views.cache_clear()
    for name in [name for name in sys.modules if name.startswith(f"{bundled.__name__}.regatta")]:
        del sys.modules[name]


@pytest.mark.usefixtures("regatta")
def test_a_folder_adds_a_study_and_its_view() -> None:
    listed = CliRunner().invoke(cli, ["run", "--list"], terminal_width=200).output
    assert "regatta the regatta" in " ".join(listed.split())
    assert comparison_document(experiment())["regatta"] == {"boats": 8}
