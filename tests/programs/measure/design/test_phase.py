"""Blocks of a checkpoint cycle are long enough for every arm, count only with its checkpoint, and say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment

from pgdyno.base.errors import UsageError
from pgdyno.cli.main import cli
from pgdyno.measure.blocks.blocks import missing_checkpoint
from pgdyno.measure.design.phase import phase_note, phase_of, with_phase
from pgdyno.measure.design.schedule import turns_of
from pgdyno.measure.view.method import design_table
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import ArmBlock, Design, DesignKind, Phase
from pgdyno.model.variants.variant import Variant

ARMS = (Variant("default"), Variant("plan", {"checkpoint_timeout": "15min"}))
CYCLE = Design(phase=Phase.CYCLE).with_writing()


def test_a_block_lasts_twice_the_longest_timeout_of_all_arms() -> None:
    assert with_phase(CYCLE, ARMS).cycle_s == 2 * 15 * 60
    assert with_phase(CYCLE, ARMS[:1]).cycle_s == 2 * 5 * 60  # PostgreSQL's own default
    assert with_phase(CYCLE, [Variant("a", {"checkpoint_timeout": "30"})]).cycle_s == 60
    assert with_phase(Design(), ARMS) == Design()


def test_only_workloads_that_write_take_that_long() -> None:
    design = with_phase(CYCLE, ARMS)
    assert (design.block_s, design.slice_s) == (6.0, 0.05)
    writing = design.for_writing()
    assert (writing.block_s, writing.slice_s, writing.blocks_per_round) == (1800.0, 0.5, 1)
    assert turns_of(2, writing) == 3600


def test_a_whole_trial_is_one_turn() -> None:
    trials = replace(Design(phase=Phase.CYCLE), kind=DesignKind.ALTERNATING, slice_s=10.0, block_s=10.0)
    writing = with_phase(trials, ARMS).for_writing()
    assert (writing.slice_s, writing.block_s, turns_of(1, writing)) == (1800.0, 1800.0, 1)


def observed(variant: str, checkpoints: float) -> ArmBlock:
    return ArmBlock(variant, 1, 1.0, {"checkpoints": checkpoints})


def test_a_block_without_a_checkpoint_of_every_arm_is_void() -> None:
    arms = [observed("default", 2), observed("plan", 0)]
    assert missing_checkpoint(arms, is_wanted=True) == "no checkpoint of plan began in it"
    assert missing_checkpoint(arms, is_wanted=False) is None
    assert missing_checkpoint(arms[:1], is_wanted=True) is None


def test_a_note_says_what_figures_are_of() -> None:
    assert "savings by less frequent checkpoints are not credited" in phase_note(Design())
    of_cycle = phase_note(with_phase(CYCLE, ARMS))
    assert "Their blocks last 30 min, twice the longest checkpoint_timeout: each spans" in of_cycle


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (Design(), "minute after a checkpoint"),
        (with_phase(CYCLE, ARMS), "whole checkpoint cycle, blocks of 30\N{NO-BREAK SPACE}min"),
    ],
)
def test_the_report_names_the_phase_of_what_writes(design: Design, said: str) -> None:
    found = replace(experiment(), design=design)
    assert phase_of(found, READ_ONLY) is None
    assert phase_of(found, READ_WRITE) is design.phase
    rows = [row for row in design_table(found).rows if str(row[0]).startswith("Checkpoint phase")]
    assert rows == [("Checkpoint phase of write workloads", said)]


def test_the_command_that_repeats_it_asks_for_the_cycle() -> None:
    assert "--phase cycle" in (repeat_command(replace(experiment(), design=with_phase(CYCLE, ARMS))) or "")
    assert "--phase" not in (repeat_command(experiment()) or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "pgbench-select", "--embedded"],
        ["compare", "a", "b", "--workload", "pgbench-select", "--embedded"],
        ["accelerate", "--workload", "pgbench-select", "--embedded"],
    ],
)
def test_a_cycle_of_workloads_that_only_read_is_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(cli, [*arguments, "--phase", "cycle"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == (
        "a whole checkpoint cycle needs a workload that writes, and none of these does\n"
        "DETAIL:  pgbench-select\n"
        "HINT:  leave out --phase cycle (or phase in the file), or add a workload such as pgbench-tpcb"
    )


def test_a_file_of_workloads_that_only_read_has_no_cycle(tmp_path: Path) -> None:
    file = tmp_path / "reading.toml"
    file.write_text(
        'question = "?"\nworkloads = ["pgbench-select"]\n[design]\nphase = "cycle"\n[variants.a]\n'
    )
    done = CliRunner().invoke(cli, ["run", str(file), "--embedded"])
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == (
        "a whole checkpoint cycle needs a workload that writes, and none of these does"
    )
