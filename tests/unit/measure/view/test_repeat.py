"""The command that measures an experiment again, as a report names it."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment
from tests.golden.synthetic_steps import experiment as steps

from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.variants.variant import Variant, parse_variant


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


@pytest.mark.parametrize(
    ("slice_s", "writing_slice_s", "words"),
    [
        (0.05, 0.5, []),  # as it would be measured today
        (0.05, None, ["--slice", "50ms"]),  # as an earlier version measured writing workloads
        (0.05, 0.05, ["--slice", "50ms"]),
        (1.0, 1.0, ["--slice", "1000ms"]),
    ],
)
def test_repeat_command_names_turns_that_are_not_the_default(
    slice_s: float, writing_slice_s: float | None, words: list[str]
) -> None:
    base = experiment()  # whose second workload writes
    design = replace(base.design, slice_s=slice_s, writing_slice_s=writing_slice_s)
    found = shlex.split(repeat_command(replace(base, design=design)) or "")
    assert [word for word in found if word == "--slice" or word.endswith("ms")] == words


def test_repeat_command_allows_the_files_that_were_allowed() -> None:
    path = "/proc/sys/vm/overcommit_memory"
    variants = (Variant("default"), Variant("plan", {"vm.overcommit_memory": "2"}))
    allowed = replace(experiment(), variants=variants, allowed_files=(path,))
    assert (repeat_command(allowed) or "").endswith(f" --slice 100ms --allow-file {path}")
    assert "--allow-file" not in (repeat_command(experiment()) or "")


def test_repeat_command_names_the_cell_whose_host_issued_the_load() -> None:
    from_cell = replace(experiment(), options={"cell": "lab.toml"})
    assert (repeat_command(from_cell) or "").endswith(" --slice 100ms --cell lab.toml")


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
