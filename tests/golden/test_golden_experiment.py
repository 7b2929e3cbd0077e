"""Golden files: a report, a verdict and a schema, reviewed by people; ``pytest --snapshot-update`` rewrites.

``experiment.json`` is never rewritten: a document once written stays readable.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests.fixtures.bundles.simulated_machine import RECORDED, SIMULATED
from tests.golden.synthetic import experiment
from tests.golden.synthetic_fleet import fleet, given
from tests.golden.synthetic_grid import experiment as of_a_grid
from tests.golden.synthetic_peers import experiment as of_peers
from tests.golden.synthetic_tuning import tuning

from pgdyno.base.document import to_document
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_report import render_fleet
from pgdyno.results.fleets.fleet_text import fleet_text
from pgdyno.results.machines.machine_comparison import compare_machines
from pgdyno.results.machines.machine_text import machine_comparison_text
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.store.bundle import check_bundle
from pgdyno.store.documents import dump_experiment, experiment_schema, load_experiment
from pgdyno.studies.peers_text import peers_text

DOCUMENT = Path(__file__).with_name("experiment.json")


class _Html(SingleFileSnapshotExtension):
    """A golden file that a browser opens."""

    _write_mode = WriteMode.TEXT
    file_extension = "html"


class _Text(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class _Json(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "json"


@pytest.fixture
def recorded() -> Experiment:
    """Return the experiment as it was once written."""
    return load_experiment(json.loads(DOCUMENT.read_text(encoding="utf-8")))


def test_document_once_written_is_still_read_and_written_alike(recorded: Experiment) -> None:
    assert recorded == experiment()
    assert _is_within(json.loads(DOCUMENT.read_text(encoding="utf-8")), dump_experiment(recorded))


def _is_within(older: object, newer: object) -> bool:
    """Whether everything in a document is still there; members that were added since do not matter."""
    if isinstance(older, dict) and isinstance(newer, dict):
        return all(key in newer and _is_within(value, newer[key]) for key, value in older.items())
    if isinstance(older, list) and isinstance(newer, list):
        return len(older) == len(newer) and all(map(_is_within, older, newer))
    return older == newer


def test_report(recorded: Experiment, snapshot: SnapshotAssertion) -> None:
    assert render_page(recorded) == snapshot(extension_class=_Html)


def test_report_of_a_grid(snapshot: SnapshotAssertion) -> None:
    assert render_page(of_a_grid()) == snapshot(extension_class=_Html)


def test_report_of_peers(snapshot: SnapshotAssertion) -> None:
    assert render_page(of_peers()) == snapshot(extension_class=_Html)


def test_peers_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    assert peers_text(of_peers()) == snapshot(extension_class=_Text)


def test_report_of_a_proof_with_its_search(recorded: Experiment, snapshot: SnapshotAssertion) -> None:
    assert render_page(recorded, tuning=tuning()) == snapshot(extension_class=_Html)


def test_verdict_on_a_terminal(recorded: Experiment, snapshot: SnapshotAssertion) -> None:
    assert _shown(recorded) == snapshot(extension_class=_Text)


def test_verdict_of_a_grid_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    assert _shown(of_a_grid()) == snapshot(extension_class=_Text)


def test_two_machines_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    a, b = (check_bundle(path).experiment for path in (RECORDED, SIMULATED))
    assert a is not None
    assert b is not None
    found = compare_machines(a, b, {"A": 0.35, "B": 0.28})
    assert _printed(machine_comparison_text(found), 110) == snapshot(extension_class=_Text)


def test_report_of_a_fleet(snapshot: SnapshotAssertion) -> None:
    assert render_fleet(combine(given(fleet()))) == snapshot(extension_class=_Html)


def test_a_fleet_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    assert fleet_text(combine(given(fleet()))) == snapshot(extension_class=_Text)


def test_a_fleet_as_a_document(snapshot: SnapshotAssertion) -> None:
    exact = json.dumps(to_document(combine(given(fleet(2)))))
    rounded = json.loads(exact, parse_float=lambda text: float(f"{float(text):.6g}"))
    assert json.dumps(rounded, indent=2, ensure_ascii=False) == snapshot(extension_class=_Json)


def _shown(of: Experiment) -> str:
    return _printed(verdict_table(of), 100)


def _printed(shown: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(shown)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_schema_of_the_document(snapshot: SnapshotAssertion) -> None:
    assert json.dumps(experiment_schema(), indent=2) == snapshot(extension_class=_Json)
