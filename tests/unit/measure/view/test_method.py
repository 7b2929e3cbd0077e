"""The method, in sentences and tables."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic import experiment
from tests.golden.synthetic_clients import experiment as clients
from tests.golden.synthetic_steps import experiment as steps

from pgdyno.measure.view.method import design_table, estimator_sentences, method_paragraphs, noise_floor_table
from pgdyno.model.experiments.experiment import Design, DesignKind, Stopping
from pgdyno.model.variants.variant import Variant
from pgdyno.results.page import render_page

NBSP = "\N{NO-BREAK SPACE}"


def test_duet_is_explained_with_its_numbers() -> None:
    pairing = method_paragraphs(experiment())[0]
    assert pairing.lead == "Time-sliced duet."
    assert f"turns of 100{NBSP}ms in balanced random order" in pairing.text
    assert f"the first 10{NBSP}ms of every turn are left out" in pairing.text
    assert pairing.text.endswith("Servers and load generators had separate CPUs.")


def test_longer_turns_of_workloads_that_write_are_said() -> None:
    of_both = replace(experiment(), design=replace(experiment().design, writing_slice_s=0.5))
    said = f"100{NBSP}ms, 500{NBSP}ms for write workloads"
    assert f"took turns of {said} in balanced" in method_paragraphs(of_both)[0].text
    assert ("Turn", said) in design_table(of_both).rows


def test_alternating_design_is_explained_as_such() -> None:
    design = Design(kind=DesignKind.ALTERNATING, is_isolated=False)
    pairing = method_paragraphs(replace(experiment(), design=design))[0]
    assert pairing.lead == "Alternating blocks."
    assert "turns" not in pairing.text
    assert pairing.text.endswith("Servers and load generators shared the CPUs.")


def test_estimator_takes_three_sentences() -> None:
    effect, interval, decision = estimator_sentences(Design())
    assert "ratio of variant to baseline" in effect
    assert f"95{NBSP}% interval is a t interval" in interval
    assert f"within ±2{NBSP}%" in decision
    assert all(sentence.count(". ") == 0 for sentence in (effect, interval, decision))


def test_looking_early_is_said_to_have_an_anytime_valid_interval() -> None:
    design = Design(stopping=Stopping.PRECISION, precision=0.01)
    assert (
        f"anytime-valid, because the data determined when measuring ended "
        f"(when the interval was no wider than ±1{NBSP}%)"
    ) in estimator_sentences(design)[1]


def test_noise_floor_has_the_decimals_of_its_interval() -> None:
    row = noise_floor_table(experiment()).rows[0]
    assert row[2:4] == (f"+0.2{NBSP}%", f"−0.7{NBSP}%{NBSP}…{NBSP}+1.1{NBSP}%")


def test_design_table_names_the_reset_of_every_workload() -> None:
    rows = {row[0]: row[1] for row in design_table(experiment()).rows}
    assert rows["Data reset, sysbench-read-write"] == "from a snapshot, before every round"
    assert rows["Seed of all random choices"] == "20261121"


def test_steps_are_measured_in_passes() -> None:
    paragraphs = method_paragraphs(steps())
    assert paragraphs[0].lead == "Passes."
    assert paragraphs[1].text.startswith("6 rounds were planned, each a pass over all steps")
    rows = {row[0]: row[1] for row in design_table(steps()).rows}
    assert rows["Data of the steps"] == (
        "those left by the step before; each round begins with an empty database"
    )
    assert not {"Turn", "Block", "Data reset, insert-benchmark-l.i0"} & set(rows)


def test_a_running_server_is_not_said_to_be_started_for_the_rounds() -> None:
    as_found = replace(clients(), installation=None)
    pairing, replication, effect = method_paragraphs(as_found)
    assert pairing.lead == "A running server."
    assert pairing.text == (
        "It was measured as it ran: pgdyno did not start or restart it, and changed settings only in its own "
        "sessions. "
        f"The load took turns of 100{NBSP}ms; the first 10{NBSP}ms of every turn are left out."
    )
    assert replication.text.startswith(
        f"8 rounds were planned. A round measures each workload in 1 block of 6{NBSP}s; the server is not "
        "restarted for it. "
    )
    assert "at the level of rounds (" in effect.text
    assert "server" not in effect.text
    rows = {row[0]: row[1] for row in design_table(as_found).rows}
    assert rows["Rounds (the server was not restarted)"] == "8"
    assert rows["Server and client on separate CPUs"] == "not pinned"
    assert "Rounds (servers newly started)" not in rows
    page = render_page(as_found)
    assert "The server is not restarted between rounds. Void blocks" in page
    assert "starts new servers" not in page


def test_servers_that_were_started_for_it_are_said_to_be() -> None:
    _, replication, effect = method_paragraphs(clients())
    assert "Each round starts new servers and measures each workload in 1 block of" in replication.text
    assert "at the level of started servers (" in effect.text
    assert ("Rounds (servers newly started)", "8") in design_table(clients()).rows
    by_name = replace(clients(), installation=None, variants=(Variant("default", server="18"),))
    assert method_paragraphs(by_name) == method_paragraphs(clients())
