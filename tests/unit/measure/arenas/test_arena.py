"""A load host that is lost in the middle of a round, and the experiment that goes on after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast

import pytest
from tests.fix_progress import Remembered
from tests.fix_rounds import measured_by, running_in
from tests.unit.measure.test_experiment import WORKLOAD, Clock, NoArena

from pgdyno.base.errors import LoadHostLostError
from pgdyno.measure.arenas.arena import AfterLoss, Arena, Regained, end_without_host
from pgdyno.measure.experiment import ExperimentRun
from pgdyno.measure.records.new_experiment import Context
from pgdyno.measure.rounds import Running, run_round
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Experiment, LoadHosts
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import ExperimentStore
from pgdyno.workload.bundled import load as bundled_workloads

REASON = 'load host "client1" was lost'
NAMES = ("pgbench-select", "sysbench-read-only", "pgbench-tpcb")
WORDS = "Warning\nTimeout, server 10.0.0.2 not responding."


def loss() -> LoadHostLostError:
    return LoadHostLostError("pgdyno-driver on client1 failed", host="client1", detail=WORDS)


class Started:
    """An arena whose servers are there at once."""

    def has_seats(self, *_: object) -> bool:
        return True

    @contextmanager
    def arms(self, variants: Sequence[Variant], *_: object) -> Iterator[Sequence[Variant]]:
        yield variants


def round_without_host(kind: DesignKind, monkeypatch: pytest.MonkeyPatch) -> tuple[Running, list[Block]]:
    """Run a round in which the host is lost in the second measurement; return its context and blocks."""
    measured: list[str] = []

    def measure(running: Running, number: int, workload: Workload, *_: object) -> list[Block]:
        if measured:
            raise loss()
        measured.append(workload.name)
        return [
            Block(workload.name, number, 0, 0, tuple(ArmBlock(v.name, 1, 1.0, {}) for v in running.variants))
        ]

    measured_by(measure, monkeypatch)
    running = running_in(Started(), [Variant("a"), Variant("b")], Design(kind=kind, blocks_per_round=1))
    return running, run_round(running, 3, [bundled_workloads()[name] for name in NAMES])


def test_a_round_in_turns_keeps_what_had_ended_before(monkeypatch: pytest.MonkeyPatch) -> None:
    running, blocks = round_without_host(DesignKind.DUET, monkeypatch)
    assert [(block.workload, block.void) for block in blocks] == [
        *zip(NAMES, (None, REASON, REASON), strict=True)
    ]
    assert [error.host for error in running.lost] == ["client1"]


def test_of_a_round_of_trials_none_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, blocks = round_without_host(DesignKind.ALTERNATING, monkeypatch)
    assert [(block.workload, block.void) for block in blocks] == [(name, REASON) for name in NAMES]
    assert [arm.variant for arm in blocks[0].arms] == ["a", "b"]


def test_other_servers_of_that_round_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    running, _ = round_without_host(DesignKind.DUET, monkeypatch)
    (block,) = run_round(running, 3, [bundled_workloads()["sysbench-read-write"]])
    assert block.void == REASON


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExperimentStore]:
    with closing(ExperimentStore(tmp_path / "store.sqlite")) as opened:
        yield opened


def others_go_on(arena: Arena, _: LoadHostLostError) -> Regained:
    return Regained(arena, ("client2",), "the other hosts took over its clients")


def run_with_loss(
    store: ExperimentStore,
    progress: Remembered,
    after_loss: AfterLoss,
    *,
    in_round: int = 2,
    budget_s: float | None = None,
) -> Experiment:
    """Run six rounds of 40 s, or as many as a budget holds; one after a second has no host any more."""
    clock = Clock()

    def measure(running: Running, number: int, _: object) -> list[Block]:
        is_lost = number == in_round
        clock.now_s += 1.0 if is_lost else 40.0
        if is_lost:
            running.lost.append(loss())
        arms = tuple(ArmBlock(name, 1, 1.0, {"throughput_tps": 1.0}) for name in ("a", "b"))
        return [Block(WORKLOAD, number, 0, 0, arms, REASON if is_lost else None)]

    workloads = {WORKLOAD: bundled_workloads()[WORKLOAD]}
    study = Study("s", "?", (Variant("a"), Variant("b")), (WORKLOAD,), Design())
    run = ExperimentRun(
        cast("Arena", NoArena()), store, progress, workloads, clock, run_round=measure, after_loss=after_loss
    )
    hosts = Context(load_hosts=(LoadHosts(0, ("client1", "client2")),))
    return run.run(study, context=hosts, budget_s=budget_s)


def test_a_round_without_a_host_is_repeated_and_told(store: ExperimentStore) -> None:
    progress = Remembered()
    done = run_with_loss(store, progress, others_go_on)
    assert [block.void for block in done.blocks] == [None, None, REASON, *[None] * 4]
    assert done.load_hosts == (LoadHosts(0, ("client1", "client2")), LoadHosts(3, ("client2",)))
    lost, changed = done.notes[-2:]
    assert lost == 'load host "client1" was lost in round 3: the other hosts took over its clients'
    assert changed == (
        'from round 4 on, the load came from host "client2", before from host "client1" and host "client2", '
        "with the same total of clients. Variants are compared within rounds, so the change does not affect "
        "differences; a single variant's figures mix both loads"
    )
    assert (
        "round 3 does not count: load host client1 was lost (Timeout, server 10.0.0.2 not responding.)"
        in progress.steps
    )
    assert store.load(done.id) == done


def test_a_first_round_without_a_host_does_not_say_how_many_a_budget_holds(store: ExperimentStore) -> None:
    done = run_with_loss(store, Remembered(), others_go_on, in_round=0, budget_s=601.0)
    # 560 s are left after the first that counts: 14 more of 40 s.
    assert len([block for block in done.blocks if block.void is None]) == 15


def test_no_host_is_waited_for_after_the_last_round(store: ExperimentStore) -> None:
    # 560 s after the first hold 14 rounds more: 15, and even 14. A budget repeats only what a verdict lacks.
    done = run_with_loss(store, Remembered(), end_without_host, in_round=13, budget_s=600.0)
    assert [block.round for block in done.blocks if block.void] == [13]
    assert len(done.blocks) == 14
    assert done.notes[-1] == 'load host "client1" was lost in round 14: no further round needs it'
    assert done.is_complete


def test_without_a_host_to_go_on_with_what_there_is_is_kept(store: ExperimentStore) -> None:
    with pytest.raises(LoadHostLostError) as caught:
        run_with_loss(store, Remembered(), end_without_host)
    (kept,) = store.ids()
    assert [block.void for block in store.load(kept).blocks] == [None, None, REASON]
    assert caught.value.hint == f"the 3 blocks of earlier rounds are kept: continue with --resume {kept}"
