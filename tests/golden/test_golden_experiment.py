"""Golden files: a report, a verdict and a schema, reviewed by people; ``pytest --snapshot-update`` rewrites.

``experiment.json`` is never rewritten: a document once written stays readable.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
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

from pgdyno.base.facts import to_document
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_report import render_fleet
from pgdyno.results.fleets.fleet_text import fleet_text
from pgdyno.results.machines.machine_comparison import compare_machines
from pgdyno.results.machines.machine_tables import machine_comparison_text
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.store.bundle import check_bundle
from pgdyno.store.documents import dump_experiment, experiment_schema, load_experiment
from pgdyno.studies.peers_text import peers_text

DOCUMENT = Path(__file__).with_name("experiment.json")

_PART = re.compile(r"(?=^<section |^<h2|<style|</style>)", re.MULTILINE)
# These cells and variants show every element of a grid, with what could not be had and a void block.
_CELLS = ("select-1GB-4", "select-1GB-16", "select-2GB-4", "select-2GB-16", "tpcb-1GB-4", "tpcb-1GB-16")
_PAGE_SIZES = ("4kB", "1GB", "thp-private")


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


@pytest.fixture
def short(recorded: Experiment) -> Experiment:
    """Return the experiment with two of its rounds: each has one of the void blocks."""
    return replace(recorded, blocks=tuple(one for one in recorded.blocks if one.round in {0, 3}))


def test_report(short: Experiment, snapshot: SnapshotAssertion) -> None:
    assert render_page(short) == snapshot(extension_class=_Html)


def test_report_of_a_grid(short: Experiment, snapshot: SnapshotAssertion) -> None:
    page = render_page(_part_of_a_grid(of_a_grid()))
    assert _beyond(render_page(short), page) == snapshot(extension_class=_Html)


def _part_of_a_grid(whole: Experiment) -> Experiment:
    blocks = (
        replace(block, arms=tuple(arm for arm in block.arms if arm.variant in _PAGE_SIZES))
        for block in whole.blocks
        if block.workload in _CELLS
    )
    return replace(
        whole,
        workloads=_CELLS,
        cells={name: whole.cells[name] for name in _CELLS},
        blocks=tuple(blocks),
        variants=tuple(one for one in whole.variants if one.name in _PAGE_SIZES),
        settings=tuple(one for one in whole.settings if one.variant in _PAGE_SIZES),
        verdicts=tuple(
            one for one in whole.verdicts if one.workload in _CELLS and one.variant in _PAGE_SIZES
        ),
    )


def test_report_of_peers(short: Experiment, snapshot: SnapshotAssertion) -> None:
    whole = of_peers()
    page = render_page(replace(whole, blocks=tuple(one for one in whole.blocks if one.round < 2)))
    assert _beyond(render_page(short), page) == snapshot(extension_class=_Html)


def test_peers_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    assert peers_text(of_peers()) == snapshot(extension_class=_Text)


def test_report_of_a_proof_with_its_search(short: Experiment, snapshot: SnapshotAssertion) -> None:
    page = render_page(short, tuning=tuning())
    assert _beyond(render_page(short), page) == snapshot(extension_class=_Html)


def _beyond(report: str, page: str) -> str:
    """Return a page without the parts that the report has too: one line takes the place of each."""
    known = set(_PART.split(report))
    parts = (
        f"<!-- as in test_report.html: {part.splitlines()[0]} -->\n" if part in known else part
        for part in _PART.split(page)
    )
    return "".join(parts)


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


def test_report_of_a_fleet(short: Experiment, snapshot: SnapshotAssertion) -> None:
    page = render_fleet(combine(given(fleet())))
    assert _beyond(render_page(short), page) == snapshot(extension_class=_Html)


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
