"""The method, in sentences and tables."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic import experiment
from tests.golden.synthetic_clients import experiment as clients
from tests.golden.synthetic_steps import experiment as steps

from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Stopping
from pgdyno.model.variants.variant import Variant
from pgdyno.report.page.method import (
    design_table,
    drain_table,
    estimator_sentences,
    left_out_table,
    method_paragraphs,
    noise_floor_table,
    void_block_table,
    void_rule_table,
)
from pgdyno.report.page.page import render_page

NBSP = "\N{NO-BREAK SPACE}"


def test_duet_is_explained_with_its_numbers() -> None:
    pairing = method_paragraphs(experiment())[0]
    assert pairing.lead == "Time-sliced duet."
    assert f"turns of 100{NBSP}ms in balanced random order" in pairing.text
    assert f"the first 10{NBSP}ms of every turn are left out" in pairing.text
    assert pairing.text.endswith("Servers and load generators had CPUs of their own.")


def test_longer_turns_of_workloads_that_write_are_said() -> None:
    of_both = replace(experiment(), design=replace(experiment().design, writing_slice_s=0.5))
    said = f"100{NBSP}ms, 500{NBSP}ms where data are changed"
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
        f"anytime-valid, because the data themselves decided when measuring ended "
        f"(when the interval was no wider than ±1{NBSP}%)"
    ) in estimator_sentences(design)[1]


def test_ends_of_turns_are_shown_by_variant_with_the_largest_difference_in_a_block() -> None:
    def block(index: int, default: float, plan: float, apart: float) -> Block:
        arms = (
            ArmBlock("default", 1, 1.0, {"drain_share": default}),
            ArmBlock("plan", 1, 1.0, {"drain_share": plan}),
        )
        return Block("sysbench-read-write", 0, index, 0, arms, audit={"drain_share_difference": apart})

    blocks = (block(0, 0.08, 0.10, 0.02), block(1, 0.10, 0.11, 0.01))
    assert drain_table(replace(experiment(), blocks=blocks)).rows == (
        ("sysbench-read-write", "default", f"9.0{NBSP}%", f"10.0{NBSP}%", f"2.0{NBSP}%"),
        ("sysbench-read-write", "plan", f"10.5{NBSP}%", f"11.0{NBSP}%", f"2.0{NBSP}%"),
    )
    page = render_page(replace(experiment(), blocks=blocks))
    assert "Ends of turns, in which transactions end and none begins" in page


def test_where_the_ends_of_turns_were_not_recorded_there_is_no_table_of_them() -> None:
    assert drain_table(experiment()).rows == ()
    assert "Ends of turns" not in render_page(experiment())


def test_every_threshold_is_printed_beside_the_worst_value_seen() -> None:
    rows = {row[0]: row[1:] for row in void_rule_table(experiment()).rows}
    assert rows["CPU time stolen by the hypervisor"] == (
        f"above 10{NBSP}%, and twice the median",
        f"14.2{NBSP}%",
    )
    assert rows["void blocks, then the report begins with it"] == (f"above 30{NBSP}%", f"2 of 24 (8{NBSP}%)")


def test_the_largest_part_that_was_left_out_of_a_block_is_shown() -> None:
    base = experiment()
    first = replace(base.blocks[0], audit={**base.blocks[0].audit, "left_out_share": 1 / 6})
    disturbed = replace(base, blocks=(first, *base.blocks[1:]))
    rows = {row[0]: row[1:] for row in void_rule_table(disturbed).rows}
    assert rows["part of a block left out for that"] == ("half", f"16.7{NBSP}%")
    assert left_out_table(disturbed).rows == ((first.workload, "1", "1", f"16.7{NBSP}%"),)
    assert left_out_table(base).rows == ()
    assert "Blocks of which a part is left out" in render_page(disturbed)
    assert "Blocks of which a part is left out" not in render_page(base)
    assert "part of a block left out for that" not in {row[0] for row in void_rule_table(base).rows}


def test_turns_that_load_hosts_began_apart_have_a_rule_where_there_were_several() -> None:
    base, rule = experiment(), "a variant's turns that load hosts may have begun too far apart"
    assert rule not in {row[0] for row in void_rule_table(base).rows}
    first = replace(base.blocks[0], audit={**base.blocks[0].audit, "apart_share": 0.125})
    rows = {row[0]: row[1:] for row in void_rule_table(replace(base, blocks=(first, *base.blocks[1:]))).rows}
    assert rows[rule] == (f"above 20{NBSP}%", f"12.5{NBSP}%")


def test_audits_that_were_not_read_say_so() -> None:
    base = experiment()
    blind = replace(base, blocks=tuple(replace(block, audit={}) for block in base.blocks))
    assert void_rule_table(blind).rows[0][2] == "not read"


def test_void_blocks_are_listed_with_their_reasons() -> None:
    assert void_block_table(experiment()).rows == (
        (
            "sysbench-read-write",
            "1",
            "1",
            "12.9% of the CPU time went to processes that are not ours (limit 10%)",
        ),
        (
            "sysbench-read-only",
            "4",
            "2",
            "14.2% of the CPU time was stolen by the hypervisor (limit 10%)",
        ),
    )


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
    assert paragraphs[1].text.startswith("Planned were 6 rounds, each a pass over all steps")
    rows = {row[0]: row[1] for row in design_table(steps()).rows}
    assert rows["Data of the steps"] == (
        "what the step before has left; each round begins with an empty database"
    )
    assert not {"Turn", "Block", "Data reset, insert-benchmark-l.i0"} & set(rows)


def test_a_running_server_is_not_said_to_be_started_for_the_rounds() -> None:
    as_found = replace(clients(), installation=None)
    pairing, replication, effect = method_paragraphs(as_found)
    assert pairing.lead == "A running server."
    assert pairing.text == (
        "It was measured as it ran: pgdyno did not start it, did not restart it and set nothing but settings "
        "of sessions of its own. "
        f"The load took turns of 100{NBSP}ms; the first 10{NBSP}ms of every turn are left out."
    )
    assert replication.text.startswith(
        f"Planned were 8 rounds. A round measures each workload in 1 block of 6{NBSP}s; the server is not "
        "restarted for it. "
    )
    assert "at the level of rounds (" in effect.text
    assert "server" not in effect.text
    rows = {row[0]: row[1] for row in design_table(as_found).rows}
    assert rows["Rounds (the server was not restarted)"] == "8"
    assert rows["Server and client on CPUs of their own"] == "not pinned"
    assert "Rounds (servers newly started)" not in rows
    page = render_page(as_found)
    assert "The server is not restarted between rounds. Void blocks" in page
    assert "afresh" not in page


def test_servers_that_were_started_for_it_are_said_to_be() -> None:
    _, replication, effect = method_paragraphs(clients())
    assert "A round starts every server afresh and measures each workload in 1 block of" in replication.text
    assert "at the level of started servers (" in effect.text
    assert ("Rounds (servers newly started)", "8") in design_table(clients()).rows
    by_name = replace(clients(), installation=None, variants=(Variant("default", server="18"),))
    assert method_paragraphs(by_name) == method_paragraphs(clients())
