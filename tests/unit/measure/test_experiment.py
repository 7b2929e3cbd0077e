"""An experiment from round to round: one that fails later, one on a machine that is disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest
from tests.golden.synthetic import experiment as imported_experiment

from pgdyno.base.errors import InterruptedByUserError, ServerCrashedError, UsageError
from pgdyno.cli.output import Lines
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.blocks.blocks import void_reason
from pgdyno.measure.experiment import ExperimentRun, RunRound
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, Experiment, VoidThresholds
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import ExperimentStore, Origin
from pgdyno.workload.bundled import load as bundled_workloads

WORKLOAD = "pgbench-select"
CRASH = "the server of a ended during l.i1"


@dataclass
class Loads:
    """Loads that leave nothing behind."""

    forgotten: list[str] = field(default_factory=list)

    def forget(self, label: str) -> None:
        self.forgotten.append(label)


@dataclass
class NoArena:
    """An arena in which nothing is started."""

    installation_name: str = "none"
    loads: Loads = field(default_factory=Loads)

    def why_uncounted(self, _: object) -> str:
        return "nothing is started"

    def build_notes(self, variants: Sequence[Variant]) -> tuple[str, ...]:
        return () if variants else ("no variants",)

    def check(self, *_: object) -> None:
        """Accept everything."""

    def load(self, *_: object) -> None:
        """Load nothing."""

    def schema_changes(self, *_: object) -> tuple[()]:
        return ()

    @contextmanager
    def prepared_for(self, _: object) -> Iterator[NoArena]:
        yield self


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExperimentStore]:
    with closing(ExperimentStore(tmp_path / "store.sqlite")) as opened:
        yield opened


def failing_in_round(number: int, store: ExperimentStore, *, is_resumable: bool = True) -> str:
    """Run an experiment whose server crashes then; return the error's hint."""

    def run_round(_: object, round_index: int, __: object) -> list[Block]:
        if round_index == number:
            raise ServerCrashedError(CRASH, hint="its log says why")
        return [Block(WORKLOAD, round_index, 0, 0, (ArmBlock("a", 1, 1.0, {"throughput_tps": 1.0}),))]

    with pytest.raises(ServerCrashedError, match=CRASH) as caught:
        run_study(store, Design(), run_round, is_resumable=is_resumable)
    return caught.value.hint or ""


def run_study(
    store: ExperimentStore, design: Design, run_round: RunRound, *, is_resumable: bool = True
) -> Experiment:
    workloads = {WORKLOAD: bundled_workloads()[WORKLOAD]}
    study = Study("s", "?", variants=(Variant("a"), Variant("b")), workloads=(WORKLOAD,), design=design)
    run = ExperimentRun(
        cast("Arena", NoArena()), store, Lines(), workloads, is_resumable=is_resumable, run_round=run_round
    )
    return run.run(study)


def disturbed_rounds(
    usual: dict[str, float],
    store: ExperimentStore,
    of_round: Mapping[int, dict[str, float]] = MappingProxyType({}),
) -> Experiment:
    """Run an experiment of ten rounds with one block each, which look like that but for some rounds."""

    def run_round(_: object, round_index: int, __: object) -> list[Block]:
        arms = tuple(
            ArmBlock(name, 1, 1.0, {"throughput_tps": tps}) for name, tps in (("a", 1.0), ("b", 2.0))
        )
        audit = of_round.get(round_index, usual)
        return [Block(WORKLOAD, round_index, 0, 0, arms, void_reason(audit, VoidThresholds()), audit)]

    return run_study(store, Design(rounds=10), run_round)


@dataclass
class Clock:
    """A clock that stands still but for rounds: the first takes longer."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("first_s", "budget_s", "void", "rounds"),
    [
        # After the first, 560 s hold 14 rounds of 40 s: 15, and even 14. They took 40 + 13 × 36 = 508 s, and
        # two more of 40 s end before 600.
        (40.0, 600.0, range(0), 16),
        (36.0, 580.0, range(0), 16),
        (40.0, 580.0, range(0), 14),  # 508 + 80 s would be too late
        (40.0, 100.0, range(0), 5),  # too small a budget is exceeded
        # 13 rounds without huge pages take 4 s each, 40 + 13 × 4 = 92 s: 508 s hold 12 of 40 s. Those take
        # 432 s, and two more of 40 s would be too late.
        (40.0, 600.0, range(1, 14), 26),
    ],
)
def test_a_budget_is_used_up_and_kept(
    first_s: float,
    budget_s: float,
    void: range,
    rounds: int,
    store: ExperimentStore,
) -> None:
    clock = Clock()

    def run_round(_: object, round_index: int, __: object) -> list[Block]:
        is_void = round_index in void
        clock.now_s += 4.0 if is_void else 36.0 if round_index else first_s
        arms = tuple(ArmBlock(name, 1, 1.0, {"throughput_tps": 1.0}) for name in ("a", "b"))
        return [Block(WORKLOAD, round_index, 0, 0, arms, "no huge pages" if is_void else None)]

    workloads = {WORKLOAD: bundled_workloads()[WORKLOAD]}
    study = Study("s", "?", (Variant("a"), Variant("b")), (WORKLOAD,), Design())
    run = ExperimentRun(cast("Arena", NoArena()), store, Lines(), workloads, clock=clock, run_round=run_round)
    assert len(run.run(study, budget_s=budget_s).blocks) == rounds
    if budget_s > 100:
        assert clock.now_s <= budget_s


def test_where_the_hypervisor_takes_time_throughout_measuring_goes_on_and_all_blocks_count(
    store: ExperimentStore,
) -> None:
    done = disturbed_rounds({"steal_share": 0.5}, store)
    assert done == store.load(done.id)
    assert [block.void for block in done.blocks] == [None] * 10
    assert "the hypervisor took more than 10\xa0% of the CPU time in 10 of 10 trials" in done.notes[-1]
    (throughput,) = (verdict for verdict in done.verdicts if verdict.metric == "throughput_tps")
    assert throughput.effect == pytest.approx(2.0)


def test_where_other_processes_do_it_goes_on_as_well_and_says_how_much_they_took(
    store: ExperimentStore,
) -> None:
    done = disturbed_rounds({"foreign_cpu_share": 0.5}, store)
    assert [block.void for block in done.blocks] == [None] * 10
    assert done.notes[-1].startswith("machine disturbed: other processes took more than 10\xa0%")
    assert "(up to 50\xa0%; median of the 10: 50\xa0%)" in done.notes[-1]


def test_where_nothing_counts_it_stops(store: ExperimentStore) -> None:
    done = disturbed_rounds({"client_saturation_share": 0.99}, store)
    assert len(done.blocks) == 8
    assert done.notes[-1].startswith("machine too noisy: 100\xa0% of the blocks are void (limit 30\xa0%)")
    assert "nothing counts, so measuring stopped early" in done.notes[-1]
    assert all(verdict.effect is None for verdict in done.verdicts)


def test_where_something_counts_it_goes_on(store: ExperimentStore) -> None:
    saturated = {index: {"client_saturation_share": 0.99} for index in range(6)}
    done = disturbed_rounds({}, store, of_round=saturated)
    assert len(done.blocks) == 16  # six rounds are repeated
    assert "38\xa0% of the blocks are void (limit 30\xa0%)" in done.notes[-1]
    assert done.notes[-1].endswith("rounds were repeated; repeat it when the machine is less busy")


def test_what_earlier_rounds_have_measured_is_kept_and_the_hint_says_so(store: ExperimentStore) -> None:
    hint = failing_in_round(2, store)
    (kept,) = store.ids()
    assert [block.round for block in store.load(kept).blocks] == [0, 1]
    assert hint == (
        f"its log says why; the 2 blocks of earlier rounds are kept: continue with --resume {kept}"
    )


@pytest.mark.parametrize(
    ("rounds", "message"),
    [
        (0, "interrupted; no round has ended yet"),
        (1, "interrupted; the block measured so far is kept"),
        (2, "interrupted; the 2 blocks measured so far are kept"),
    ],
)
def test_an_interruption_says_how_many_blocks_are_kept(
    rounds: int, message: str, store: ExperimentStore
) -> None:
    def run_round(_: object, round_index: int, __: object) -> list[Block]:
        if round_index == rounds:
            raise KeyboardInterrupt
        return [Block(WORKLOAD, round_index, 0, 0, (ArmBlock("a", 1, 1.0, {"throughput_tps": 1.0}),))]

    with pytest.raises(InterruptedByUserError) as caught:
        run_study(store, Design(), run_round)
    (kept,) = store.ids()
    assert caught.value.message == message
    report = f"pgdyno report {kept}, or " if rounds else ""
    assert caught.value.hint == f"{report}continue with --resume {kept}"


def test_no_option_is_named_that_the_command_does_not_have(store: ExperimentStore) -> None:
    hint = failing_in_round(2, store, is_resumable=False)
    (kept,) = store.ids()
    assert hint == f"its log says why; the 2 blocks of earlier rounds are kept: pgdyno report {kept}"


def test_a_failure_in_the_first_round_leaves_nothing_to_continue_with(store: ExperimentStore) -> None:
    assert failing_in_round(0, store) == "its log says why"


def test_what_was_imported_is_not_continued(store: ExperimentStore) -> None:
    workloads = {WORKLOAD: bundled_workloads()[WORKLOAD]}
    study = Study("s", "?", variants=(Variant("a"), Variant("b")), workloads=(WORKLOAD,), design=Design())
    run = ExperimentRun(cast("Arena", NoArena()), store, Lines(), workloads)
    store.add_imported(imported_experiment(), [], Origin("2026-11-22T10:00:00+00:00", "0" * 64))
    with pytest.raises(UsageError) as caught:
        run.run(study, resume=imported_experiment().id)
    assert str(caught.value) == (
        f"experiment {imported_experiment().id} was imported: a measurement here would not be comparable\n"
        "HINT:  repeat its command line without --resume"
    )


def test_what_had_its_load_from_other_hosts_is_not_continued_from_here(store: ExperimentStore) -> None:
    workloads = {WORKLOAD: bundled_workloads()[WORKLOAD]}
    study = Study("s", "?", variants=(Variant("a"), Variant("b")), workloads=(WORKLOAD,), design=Design())
    run = ExperimentRun(cast("Arena", NoArena()), store, Lines(), workloads)
    store.save(replace(imported_experiment(), options={"cell": "hosts.toml"}))
    with pytest.raises(UsageError) as caught:
        run.run(study, resume=imported_experiment().id)
    assert caught.value.message.endswith("had its load from other hosts")
    assert caught.value.hint == (
        "repeat its command line, with or without --cell as before, and add --resume"
    )
