"""What ``pgdyno run`` asks for, and that the command in a report asks for the same again."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.fix_home import name_servers
from tests.golden.synthetic_steps import experiment as ten_steps

from pgdyno.base.ports import Progress
from pgdyno.cli.main import cli
from pgdyno.cli.measuring import Measuring
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.records.new_experiment import Context
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import Experiment, Stopping
from pgdyno.model.experiments.study import Study
from pgdyno.postgres.process.installation import Installation
from pgdyno.studies import run
from pgdyno.studies.bundled import accelerator_study

MINE = Installation(Path("/nowhere"), "18.1", 18, "embedded")


@dataclass
class Measured:
    """Stands in for the measurement: keeps what it was to measure."""

    study: Study | None = None
    conditions: Conditions | None = None
    context: Context | None = None

    def __call__(
        self, study: Study, conditions: Conditions, _progress: Progress, context: Context | None = None
    ) -> Experiment:
        self.study, self.conditions, self.context = study, conditions, context
        return self.experiment()

    def experiment(self) -> Experiment:
        """Return an experiment without results."""
        assert self.study is not None
        assert self.conditions is not None
        context = self.context or Context()
        names = self.study.workloads
        asked = [self.conditions.workloads[name] for name in names]
        return replace(
            ten_steps(),
            name=self.study.name,
            variants=self.study.variants,
            baseline=self.study.baseline,
            workloads=names,
            operations={workload.name: workload.step.operations for workload in asked if workload.step},
            cells={workload.name: workload.cell for workload in asked if workload.cell},
            design=self.conditions.design,
            options=context.options,
            factors=context.factors,
            blocks=(),
            verdicts=(),
        )


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found = Measured()
    monkeypatch.setattr(Measuring, "installation", lambda _: MINE)
    monkeypatch.setattr(run, "measure", found)
    return found


def invoke(*words: str, study: str = "insert-benchmark") -> Result:
    return CliRunner().invoke(cli, ["run", study, "--embedded", *words, "--json"])


@pytest.mark.parametrize(
    ("words", "clients"), [((), 2), (("--clients", "3"), 3), (("--preset", "cached-small"), 1)]
)
def test_the_design_has_the_clients_that_the_steps_run_with(
    measured: Measured, words: tuple[str, ...], clients: int
) -> None:
    done = invoke(*words)
    assert json.loads(done.stdout)["design"]["clients"] == clients
    assert measured.conditions is not None
    issued = {w.step.clients for w in measured.conditions.workloads.values() if w.step}
    assert issued == {clients}


EVERYTHING = shlex.split(
    "--preset io-bound-quick --rows 2000000/4000/500 --step-seconds 7 --mode faithful --step l.i1 "
    "--step qr500 --factor io_method=sync,worker --factor jit=on --blocks 7 --seed 5 --clients 3 --no-isolate"
)


@pytest.mark.parametrize(
    "words", [(), ("--step", "qr100"), ("--preset", "cached-small", "--factor", "jit=on,off"), EVERYTHING]
)
def test_the_command_in_a_report_asks_for_the_same_again(measured: Measured, words: list[str]) -> None:
    assert invoke(*words).exit_code == 0
    asked = (measured.study, measured.conditions, measured.context)
    command = shlex.split(repeat_command(measured.experiment()) or "")
    assert command[:4] == ["pgdyno", "run", "insert-benchmark", "--embedded"]
    assert invoke(*command[4:]).exit_code == 0
    assert (measured.study, measured.conditions, measured.context) == asked


@pytest.mark.parametrize(
    ("study", "text"),
    [
        ("clients", "--protocol simple --protocol extended --clients 5 --budget 3m"),
        ("clients", "--workload pgbench-aggregate --tables shared,own --clients 5"),
        ("loop", "--workload pgbench-select --workload pgbench-aggregate --tables own --clients 2"),
        ("parallel-degree", "--workload sort --workload count --clients 3 --blocks 7"),
        (
            "parallel-degree",
            "--factor Parallel_Leader_Participation=on,off --factor jit=on --budget 5m --block 900ms",
        ),
        (
            "parallel-degree",
            "--query 'CREATE TABLE copied AS TABLE t_bit' --writes --preset page-cache --budget 90s",
        ),
    ],
)
def test_the_command_of_a_grid_asks_for_the_same_again(measured: Measured, study: str, text: str) -> None:
    assert invoke(*shlex.split(text), study=study).exit_code == 0
    asked = (measured.study, measured.conditions, measured.context)
    command = shlex.split(repeat_command(measured.experiment()) or "")
    assert command[:4] == ["pgdyno", "run", study, "--embedded"]
    assert invoke(*command[4:], study=study).exit_code == 0
    assert (measured.study, measured.conditions, measured.context) == asked


@pytest.mark.parametrize(
    ("words", "lengths"),
    [((), (0.05, 0.5)), (("--slice", "200ms"), (0.2, 0.2)), (("--slice", "1s"), (1.0, 1.0))],
)
def test_a_length_of_turns_that_is_asked_for_holds_for_all_workloads(
    words: tuple[str, ...], lengths: tuple[float, float], measured: Measured
) -> None:
    assert invoke(*words, study="clients").exit_code == 0
    assert measured.study is not None
    design = measured.study.design.with_writing()  # as an experiment with such workloads has it
    assert (design.slice_s, design.writing_slice_s) == lengths


def test_with_factors_the_best_level_is_not_the_question(measured: Measured) -> None:
    questions = []
    both = ("--factor", "jit=on,off", "--factor", "work_mem=4MB,8MB")
    for factors in ((), ("--factor", "jit=on"), ("--factor", "jit=on,off", "--factor", "work_mem=4MB"), both):
        assert invoke(*factors, study="parallel-degree").exit_code == 0
        assert measured.study is not None
        questions.append(measured.study.question)
    assert questions == [
        "How many parallel workers are as good as any number of them?",
        "How many parallel workers are as good as any number of them?",
        "What does jit change, at every level?",
        "What do jit and work_mem change, at every level?",
    ]


def test_accepted_differences_of_builds_are_accepted_again(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_servers(monkeypatch, lambda _: MINE)
    assert invoke("--factor", "server=a,b", "--accept").exit_code == 0
    command = shlex.split(repeat_command(measured.experiment()) or "")
    assert command[3:8] == ["--factor", "server=a,b", "--mode", "corrected", "--accept"]


@pytest.mark.parametrize(
    ("words", "rounds"),
    [
        ((), 5),  # the fewest that a verdict needs
        (("--until", "decided"), 200),  # looking takes six
        (("--until", "precision=1%"), 200),
        (("--until", "decided", "--blocks", "8"), 8),
    ],
)
def test_waiting_for_a_decision_is_given_the_passes_that_it_takes(
    measured: Measured, words: tuple[str, ...], rounds: int
) -> None:
    assert invoke(*words).exit_code == 0
    assert measured.conditions is not None
    design = measured.conditions.design
    assert design.rounds == rounds
    assert (design.stopping is Stopping.FIXED) == (not words)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("option", "value"),
    [("--block", "3s"), ("--slice", "1s"), ("--design", "duet")],
)
def test_options_that_steps_have_no_use_for_are_refused(option: str, value: str) -> None:
    done = invoke(option, value)
    assert done.exit_code != 0
    said = f"{done.output} {done.exception}"
    assert f"this study runs its steps from beginning to end: it takes no {option}" in said


@pytest.mark.parametrize("name", ["max_wal_size", "MAX_wal_size"])
def test_the_room_on_disk_is_asked_for_the_largest_wal_of_the_variants(measured: Measured, name: str) -> None:
    assert invoke().exit_code == 0
    usual = disk_bytes(measured)
    assert invoke("--factor", f"{name}=2048,11GB").exit_code == 0  # without a unit it is MB
    assert disk_bytes(measured) - usual == 15 << 30  # 1.5 × (11 GiB − 1 GiB, PostgreSQL's own)


def disk_bytes(measured: Measured) -> int:
    assert measured.conditions is not None
    (size,) = {workload.disk_bytes for workload in measured.conditions.workloads.values()}
    assert size is not None
    return size


@pytest.mark.usefixtures("measured", "own_home")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--benchmark", "tpcc"), 'no benchmark "tpcc" for peers'),
        (("--preset", "quick"), "the study peers takes no --preset"),
        (("--benchmark", "tpch", "--step", "l.i0"), "the study peers takes no --step"),
        (("--benchmark", "tpch", "--scale", "0.0001"), "is not a multiple of 0.001"),
        (("--benchmark", "tpch", "--workload", "pgbench-tpcb"), "this study has its own workloads"),
        (("--benchmark", "insert-benchmark", "--step", "l.i9"), 'the Insert Benchmark has no step "l.i9"'),
        (("--benchmark", "insert-benchmark", "--slice", "1s"), "runs its steps from beginning to end"),
        (("--benchmark", "insert-benchmark", "--preset", "io-bound-quick"), "has its own configuration"),
        (("--benchmark", "insert-benchmark", "--factor", "jit=on,off"), "varies whole configurations itself"),
        (("--scale", "0.5"), "is not an integer"),
    ],
)
def test_a_benchmark_of_peers_takes_the_options_of_its_study_and_no_others(
    words: tuple[str, ...], said: str
) -> None:
    done = invoke(*words, study="peers")
    assert done.exit_code != 0
    assert said in f"{done.output} {done.exception}"


ASKED = Measuring(
    embedded=True, pg_bin=None, workloads=(), scripts=(), scale=None, generator=None, clients=4, blocks=None,
    budget_s=None, until=None, block_s=None, slice_s=None, kind=None, isolate=None, seed=1, as_booted=False,
    unlike=False, resume=None, gate=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "generator"),
    [
        (ASKED, "sysbench"),
        (replace(ASKED, generator="driver"), "driver"),
        (replace(ASKED, workloads=("pgbench-select",)), None),  # which sysbench does not have
    ],
)
def test_the_accelerators_study_has_its_load_from_sysbench_unless_told(
    asked: Measuring, generator: str | None
) -> None:
    study = accelerator_study.STUDY
    assert asked.or_workloads(study.measures, study.generator).generator == generator
