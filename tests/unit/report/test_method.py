"""The method, in sentences and tables."""

from __future__ import annotations

import shlex
from dataclasses import replace

from tests.golden.synthetic import experiment
from tests.golden.synthetic_steps import experiment as steps

from pgdyno.model.experiment import Design, DesignKind, Experiment, Stopping
from pgdyno.model.variant import Variant, parse_variant
from pgdyno.report.method import (
    design_table,
    estimator_sentences,
    method_paragraphs,
    noise_floor_table,
    repeat_command,
    void_block_table,
    void_rule_table,
)

NBSP = "\N{NO-BREAK SPACE}"


def test_duet_is_explained_with_its_numbers() -> None:
    pairing = method_paragraphs(experiment())[0]
    assert pairing.lead == "Time-sliced duet."
    assert f"turns of 100{NBSP}ms in balanced random order" in pairing.text
    assert f"the first 10{NBSP}ms of every turn are left out" in pairing.text
    assert pairing.text.endswith("Servers and load generators had CPUs of their own.")


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


def test_every_threshold_is_printed_beside_the_worst_value_seen() -> None:
    rows = {row[0]: row[1:] for row in void_rule_table(experiment()).rows}
    assert rows["CPU time stolen by the hypervisor"] == (f"above 10{NBSP}%", f"14.2{NBSP}%")
    assert rows["void blocks, then the experiment stops"] == (f"above 30{NBSP}%", f"2 of 24 (8{NBSP}%)")


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


def test_repeat_command_can_be_typed_as_it_is() -> None:
    base = experiment()
    quoted = replace(
        base,
        variants=(Variant("plan", {"search_path": '"$user", public'}), Variant("default")),
        design=replace(base.design, clients=8, slice_s=0.2, block_s=3.0, is_isolated=False),
    )
    words = shlex.split(repeat_command(quoted) or "")
    assert words[:3] == ["pgdyno", "compare", "default"]
    assert parse_variant(words[3]) == quoted.variants[0]
    assert words[4:] == shlex.split(
        "--workload sysbench-read-only --workload sysbench-read-write --embedded --scale 4 --blocks 12 "
        "--seed 20261121 --clients 8 --block 3s --slice 200ms --no-isolate"
    )


def test_repeat_command_names_the_programs_that_were_measured() -> None:
    elsewhere = replace(experiment(), installation="/opt/pg 18/bin", scales={"a": 1, "b": 2})
    command = repeat_command(elsewhere) or ""
    assert "--pg-bin '/opt/pg 18/bin'" in command
    assert "--scale" not in command  # each workload has its own
    named = tuple(replace(variant, server="debian-17") for variant in elsewhere.variants)
    assert "--pg-bin" not in (repeat_command(replace(elsewhere, variants=named)) or "")


def test_a_users_own_scripts_have_no_command_because_they_are_not_stored() -> None:
    assert repeat_command(replace(experiment(), workloads=("scripts",))) is None


def test_variants_that_may_lose_data_have_no_command() -> None:
    unsafe = (Variant("default"), Variant("fast", {"fsync": "off"}))
    assert repeat_command(replace(experiment(), variants=unsafe)) is None


def of_steps(*variants: Variant) -> Experiment:
    factors = tuple(dict.fromkeys(name for variant in variants for name in variant.settings))
    return replace(
        steps(),
        variants=variants,
        baseline=variants[0].name,
        verdicts=(),
        blocks=(),
        options={"preset": "quick", "mode": "corrected", "accept": ""},
        factors=("server", *factors) if variants[0].server else factors,
    )


def test_steps_are_measured_in_passes() -> None:
    paragraphs = method_paragraphs(steps())
    assert paragraphs[0].lead == "Passes."
    assert paragraphs[1].text.startswith("Planned were 6 rounds, each a pass over all steps")
    rows = {row[0]: row[1] for row in design_table(steps()).rows}
    assert rows["Data of the steps"] == (
        "what the step before has left; each round begins with an empty database"
    )
    assert not {"Turn", "Block", "Data reset, insert-benchmark-l.i0"} & set(rows)


def test_repeat_command_of_steps_names_factors_options_passes_and_clients() -> None:
    sync, worker = Variant("sync", {"io_method": "sync"}), Variant("worker", {"io_method": "worker"})
    assert repeat_command(of_steps(sync, worker)) == (
        "pgdyno run insert-benchmark --embedded --factor io_method=sync,worker --preset quick "
        "--mode corrected --accept --blocks 6 --seed 20261121 --clients 2"
    )
    few = replace(of_steps(sync, worker), workloads=("insert-benchmark-l.i0", "insert-benchmark-l.x"))
    assert "--step l.i0 --step l.x --blocks" in (repeat_command(few) or "")


def test_repeat_command_of_steps_crosses_factors() -> None:
    grid = [
        Variant(f"{server}-{jit}", {"jit": jit}, server) for server in ("17", "18") for jit in ("on", "off")
    ]
    assert "--factor server=17,18 --factor jit=on,off" in (repeat_command(of_steps(*grid)) or "")
    assert repeat_command(of_steps(*grid[:3])) is None


def test_repeat_command_of_steps_names_no_setting_that_belongs_to_the_preset() -> None:
    preset = {"synchronous_commit": "off", "vacuum_buffer_usage_limit": "256MB"}
    pair = [Variant(jit, {**preset, "jit": jit}) for jit in ("on", "off")]
    command = repeat_command(replace(of_steps(*pair), factors=("jit",))) or ""
    assert "--factor jit=on,off --preset quick" in command
    assert "synchronous_commit" not in command


def test_repeat_command_names_values_that_only_the_newer_server_knows() -> None:
    old, new = Variant("17", {}, "17"), [Variant(m, {"io_method": m}, "18") for m in ("sync", "worker")]
    command = repeat_command(of_steps(old, *new)) or ""
    assert "--factor server=17,18 --factor io_method=sync,worker" in command


def test_steps_whose_options_were_not_recorded_have_no_command() -> None:
    assert repeat_command(steps()) is None
    assert repeat_command(replace(steps(), variants=steps().variants[:1])) is None
