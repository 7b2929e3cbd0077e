"""``pgdyno levers``: what each lever is, what it finds, and why it is left alone."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.fix_settings import host_of, server_of

from pgdyno.base.errors import UsageError
from pgdyno.base.facts import Unknown, unknown
from pgdyno.cli.levers import command
from pgdyno.model.plans.plan import Layer, LeverEntry
from pgdyno.plan import levers
from pgdyno.plan.engine.resources import Figures, resources_of
from pgdyno.plan.inspection.inspect import InspectedServer, Inspection
from pgdyno.plan.inspection.lever_findings import choose_levers, describe_levers

NOBODY = Inspection(host_of(), Unknown("nobody answers"))


def found_on(**changes: str) -> dict[str, LeverEntry]:
    host, server = host_of(), server_of(changes=changes)
    resources = resources_of(host, server, Figures())
    inspected = InspectedServer("a server", server, resources, unknown("hidden", "/proc"))
    entries = describe_levers(choose_levers(None, None), Inspection(host, inspected), Figures())
    return {entry.name: entry for entry in entries}


def test_all_levers_are_there_by_layer_and_name() -> None:
    entries = describe_levers(choose_levers(None, None), NOBODY, Figures())
    assert {entry.name for entry in entries} == set(levers.load())
    layers = [entry.layer for entry in entries]
    assert layers == sorted(layers, key=list(Layer).index)
    of_first = [entry.name for entry in entries if entry.layer is Layer.APPLICATION]
    assert of_first == sorted(of_first)


def test_without_a_server_nothing_is_said_of_states() -> None:
    entries = describe_levers(choose_levers("jit", None), NOBODY, Figures())
    assert [entry.finding for entry in entries] == [None]


def test_a_lever_is_planned_or_left_alone_for_a_reason() -> None:
    for entry in found_on().values():
        assert entry.finding is not None
        assert bool(entry.finding.lines) != bool(entry.finding.left_alone)


def test_states_are_those_of_the_server() -> None:
    found = found_on(update_process_title="off")["update_process_title"].finding
    assert found is not None
    assert (found.state, found.detail) == ("on", "update_process_title = off")
    assert found.left_alone == "already off"


def test_a_plan_too_large_for_memory_does_not_hide_the_levers() -> None:
    found = found_on(work_mem="64GB", max_connections="1000")["jit"].finding
    assert found is not None
    assert found.state == "off"


@pytest.mark.parametrize(
    ("name", "layer", "message"),
    [
        (
            "shared_bufers",
            None,
            'no lever "shared_bufers"\nHINT:  did you mean "shared_buffers"\\? pgdyno levers',
        ),
        ("jit", Layer.SYSTEM, 'lever "jit" is not in layer system'),
    ],
)
def test_names_that_there_are_not_are_refused(name: str, layer: Layer | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_levers(name, layer)


def test_page_and_document_of_one_lever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.plan.inspection.inspect.inspect_here", lambda _figures: NOBODY)
    page = CliRunner().invoke(command, ["jit"])
    assert page.exit_code == 0
    for heading in levers._contract.HEADINGS:
        assert f"\n{heading}:\n" in page.stdout
    assert "application layer · stable · risk: safe" in page.stdout
    assert "no server was reached, so no states are shown" in page.stderr
    document = json.loads(CliRunner().invoke(command, ["jit", "--json"]).stdout)
    assert document["server"] == {"unknown": "nobody answers"}
    assert [(one["name"], one["layer"]) for one in document["levers"]] == [("jit", "application")]
