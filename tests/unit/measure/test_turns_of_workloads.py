"""How long turns are: by workload, unless the user says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest
from tests.fix_rounds import running_in
from tests.unit.measure.test_rounds import READS, WRITES, Seats

from pgdyno.cli.output import Lines
from pgdyno.measure import rounds
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.rounds import Running, run_round
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Experiment
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.store.experiments import ExperimentStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExperimentStore]:
    with closing(ExperimentStore(tmp_path / "store.sqlite")) as opened:
        yield opened


def measured(store: ExperimentStore, design: Design, *workloads: Workload) -> Experiment:
    """Return the experiment of a study with these workloads, whose rounds are not run."""

    def noted(_: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
        arms = (ArmBlock("a", 1, 1.0, {"throughput_tps": 1.0}),)
        return [Block(workload.name, round_index, 0, 0, arms) for workload in workloads]

    by_name = {workload.name: workload for workload in workloads}
    study = Study("s", "?", (Variant("a"),), tuple(by_name), replace(design, rounds=1))
    return ExperimentRun(cast("Arena", Seats(loads=Seats())), store, Lines(), by_name, run_round=noted).run(
        study
    )


class OneArm(Seats):
    """An arena with one arm."""

    @contextmanager
    def arms(self, *_: object) -> Iterator[list[object]]:
        yield [object()]


def test_an_experiment_in_which_data_are_changed_says_both_lengths(
    store: ExperimentStore,
) -> None:
    done = measured(store, Design(), READS, WRITES)
    assert (done.design.slice_s, done.design.writing_slice_s) == (0.05, 0.5)
    assert store.load(done.id).design == done.design


@pytest.mark.parametrize(
    ("design", "workload", "writing_slice_s"),
    [
        (Design(), READS, None),  # there is nothing to say
        (Design(slice_s=0.2, writing_slice_s=0.2), WRITES, 0.2),  # the user has said it
        (Design(slice_s=2.0), WRITES, 2.0),  # a study's own are longer anyway
        (Design(kind=DesignKind.ALTERNATING), WRITES, None),  # a trial is one turn
    ],
)
def test_other_experiments_have_one_length(
    design: Design,
    workload: Workload,
    writing_slice_s: float | None,
    store: ExperimentStore,
) -> None:
    done = measured(store, design, workload)
    assert done.design.writing_slice_s == writing_slice_s


def test_an_experiment_of_an_earlier_version_had_turns_of_one_length() -> None:
    assert Design(slice_s=0.05).for_writing().slice_s == 0.05


def test_a_length_in_an_experiment_file_holds_for_all_workloads(tmp_path: Path) -> None:
    file = tmp_path / "e.toml"
    head = 'question = "?"\nworkloads = ["pgbench-tpcb"]\n[variants.a]\n[variants.b]\n[design]\n'
    file.write_text(f"{head}slice_s = 0.05\n")
    assert read_experiment_file(file).design.writing_slice_s == 0.05
    file.write_text(f"{head}block_s = 3\n")
    assert read_experiment_file(file).design.writing_slice_s is None


class ToldError(Exception):
    """Ends a round where its turns would begin."""


@dataclass
class Prepared:
    """Loads that remember the length of the turns that they are prepared for."""

    seen: list[tuple[str, float]] = field(default_factory=list)
    split: CpuSplit = field(default_factory=lambda: CpuSplit((0,), (1,), is_isolated=True))

    def prepare(self, _: object, __: object, workload: Workload, design: Design, *___: object) -> None:
        self.seen.append((workload.name, design.slice_s))
        raise ToldError


def test_a_round_gives_each_workload_turns_of_its_own_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "require_degree", lambda *_: None)
    monkeypatch.setattr(rounds, "_check_invariant", lambda *_: None)
    prepared = Prepared()
    arena = OneArm(loads=cast("Seats", prepared))
    running = running_in(arena, design=Design().with_writing())
    for workload in (READS, WRITES):
        with pytest.raises(ToldError):
            run_round(running, 0, [workload])
    assert prepared.seen == [("reads", 0.05), ("writes", 0.5)]
