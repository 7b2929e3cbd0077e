"""When a round begins on data as they were loaded, and when on what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from tests.fix_rounds import running_in

from pgdyno.cli.output import Lines
from pgdyno.measure import rounds
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.rounds import Running, run_round
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet, ResetPolicy, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import ExperimentStore

READS = Workload("reads", "", DataSet("rows", 1, 100), ResetPolicy.KEEP, server_memory_bytes=1 << 28)
WRITES = replace(READS, name="writes", reset=ResetPolicy.RESTORE, server_memory_bytes=None)


@dataclass
class Seats:
    """An arena whose seats all hold data; it counts how often they are restored."""

    restored: int = 0
    writing_s: list[object] = field(default_factory=list)
    installation_name: str = "none"
    loads: Seats | None = None
    labels: list[str] = field(default_factory=list)

    def has_seats(self, *_: object) -> bool:
        return True

    def restore(self, *asked: object) -> None:
        self.restored += 1
        self.writing_s.append(asked[-1])

    @contextmanager
    def arms(self, *_: object) -> Iterator[list[object]]:
        yield []

    @contextmanager
    def prepared_for(self, _: object) -> Iterator[Seats]:
        yield self

    def check(self, *_: object) -> None:
        """Accept everything."""

    def load(self, *_: object) -> None:
        """Load nothing."""

    def schema_changes(self, *_: object) -> tuple[()]:
        return ()

    def why_uncounted(self, _: object) -> str:
        return "nothing is started"

    def build_notes(self, _: Sequence[Variant]) -> tuple[str, ...]:
        return ()

    def memory_note(self, limit_bytes: int) -> str:
        return str(limit_bytes)

    def forget(self, label: str) -> None:
        self.labels.append(label)


def restored(monkeypatch: pytest.MonkeyPatch, changed: frozenset[str]) -> int:
    """Run one round of the reading workload; return how often data were restored for it."""
    return seats_after(monkeypatch, changed, READS).restored


def seats_after(monkeypatch: pytest.MonkeyPatch, changed: frozenset[str], workload: Workload) -> Seats:
    """Run one round of a workload on one arm, in two blocks of 6 s after 2 s of warm-up."""
    seats = Seats()
    monkeypatch.setattr(rounds, "_measure", lambda *_: [])
    run_round(running_in(seats, changed=changed), 0, [workload])
    return seats


def test_data_that_nothing_changes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert restored(monkeypatch, frozenset()) == 0


def test_data_that_servers_with_other_memory_change_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert restored(monkeypatch, frozenset([READS.data_set.key])) == 1


def test_data_are_restored_with_wal_segments_for_the_time_in_which_they_are_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = frozenset([WRITES.data_set.key])
    assert seats_after(monkeypatch, changed, WRITES).writing_s == [14.0]
    assert seats_after(monkeypatch, changed, READS).writing_s == [0.0]


def test_an_experiment_tells_its_rounds_which_data_its_workloads_change(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    told: list[frozenset[str]] = []

    def noted(running: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
        told.append(running.changed)
        arms = (ArmBlock("a", 1, 1.0, {"throughput_tps": 1.0}),)
        return [Block(workload.name, round_index, 0, 0, arms) for workload in workloads]

    other = replace(READS, name="other", data_set=DataSet("others", 1, 100))
    workloads = {workload.name: workload for workload in (READS, WRITES, other)}
    study = Study("s", "?", (Variant("a"),), tuple(workloads), Design(rounds=1))
    store = ExperimentStore(tmp_path_factory.mktemp("store") / "store.sqlite")
    ExperimentRun(cast("Arena", Seats(loads=Seats())), store, Lines(), workloads, run_round=noted).run(study)
    store.close()
    assert told == [frozenset({"rows-1"})] * 3  # a group for each limit and data set
