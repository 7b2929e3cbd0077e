"""``pgdyno run tpch`` on real servers, at a scale that takes seconds: a pass, and what can go wrong."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import wait_until
from tests.fix_tpch import needs_tpchgen
from tests.integration.tpch_servers import SMALLEST, connection, loaded_arm

from pgdyno.base.errors import (
    GeneratorFailedError,
    GeneratorMissingError,
    MeasurementError,
    ServerCrashedError,
    StorageError,
)
from pgdyno.load.discovery import find_tpchgen
from pgdyno.load.query_session import QuerySession
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import MeterModule
from pgdyno.measure.meters import load as load_meters
from pgdyno.measure.meters._contract import Counters, Meter, MeterContext
from pgdyno.model.experiments.experiment import ArmBlock, Design, Experiment
from pgdyno.model.variants.variant import Variant
from pgdyno.store.experiments import open_store
from pgdyno.studies.bundled.tpch import passes as tpch_pass
from pgdyno.studies.bundled.tpch.passes import Pass, checked_plans, measure_pass
from pgdyno.studies.bundled.tpch.queries import Answer, Answers
from pgdyno.studies.bundled.tpch.query_degrees import query_degrees
from pgdyno.studies.bundled.tpch.study import workloads

pytestmark = [
    pytest.mark.server,
    pytest.mark.usefixtures("home", "pg18_bin"),
    needs_tpchgen,
]

RUN = ("run", "tpch", "--embedded", "--scale", "0.01", "--blocks", "1")
WORKLOADS = [*workloads(Sizing(scale=SMALLEST / 1000)).values()]


@contextmanager
def ready(bin_directory: Path, **settings: str) -> Iterator[Pass]:
    """Provide a pass on a started server."""
    with loaded_arm(bin_directory, variant=Variant("one", settings)) as arm:
        yield Pass(arm, Design(), 0, load_meters(), CpuSplit((0,), (0,), is_isolated=False), SMALLEST, 2)


def measured(this: Pass, answers: Answers | None = None) -> dict[str, ArmBlock]:
    blocks = measure_pass(this, WORKLOADS, answers or Answers())
    return {block.workload.removeprefix("tpch-"): block.arms[0] for block in blocks}


def measure_throughput(this: Pass) -> None:
    """Run the throughput run alone."""
    streams = [this.queries(1), this.queries(2)]
    with ExitStack() as stack:
        tpch_pass._throughput(this.arm, tpch_pass._Sessions(this.arm, stack), streams, [this.refresh(2)])


@pytest.fixture(scope="module")
def document(home: Path, pg18_bin: Path) -> Mapping[str, Any]:
    """The output of a run at two degrees, where nothing that the planner reckons with keeps workers away."""
    costs = ("min_parallel_table_scan_size=0", "parallel_setup_cost=0", "parallel_tuple_cost=0")
    factors = [option for cost in costs for option in ("--factor", cost)]
    degrees = ("--factor", "max_parallel_workers_per_gather=0,1")
    done = pgdyno(*RUN[:-1], "2", *degrees, *factors, "--json")
    assert done.returncode == 0, done.stderr
    printed: Mapping[str, Any] = json.loads(done.stdout)
    return printed


def test_a_run_ends_in_a_report_that_says_what_it_is_not(document: Mapping[str, Any], home: Path) -> None:
    assert document["tpch"]["scale"] == "0.01"
    assert "not a TPC-H result" in document["tpch"]["disclaimer"]
    assert [one["name"] for one in document["tpch"]["executions"]][-2:] == ["power", "throughput"]
    (checked,) = (note for note in document["notes"] if "22 answers" in note)
    assert checked == "all 22 answers were checked before timing: they equal the known answers"
    said = pgdyno("report", document["experiment"])
    assert said.returncode == 0, said.stderr
    page = Path(said.stdout.strip().split("Report: ")[-1]).read_text()
    assert "not comparable with published TPC-H results" in page
    assert "Hash" in page  # its plans
    bundle = pgdyno("bundle", "export", document["experiment"], "--output", str(home / "tpch.zip"))
    assert bundle.returncode == 0, bundle.stderr


def test_degrees_of_real_queries_are_asked_where_workers_were_planned(document: Mapping[str, Any]) -> None:
    (listed,) = document["tpch"]["best_degrees"]
    assert listed["degrees"] == [0, 1]
    assert "parallel_setup_cost=0" in listed["common"]
    with closing(open_store()) as store:
        experiment = store.load(document["experiment"])
    (found,) = query_degrees(undisturbed(experiment))
    asked = {one.name: one for one in found.queries if one.together}
    assert len(asked) == found.compared
    assert {"q1", "q6", "power", "throughput"} <= asked.keys()
    assert all(one.planned[0] == 0 < one.planned[1] for one in asked.values())
    assert asked["q6"].planned[1] == 1  # one scan of one table
    assert all([level.level for level in one.levels] == [0, 1] for one in asked.values())


def undisturbed(experiment: Experiment) -> Experiment:
    """Return an experiment all of whose trials count, each three times, so that there are enough of them.

    Workers are tested, and no times: how many rounds were spoilt by what else ran is no matter.
    """
    rounds = 1 + max(block.round for block in experiment.blocks)
    blocks = (
        replace(
            block,
            round=block.round + copy * rounds,
            void=None,
            arms=tuple(replace(arm, void=None) for arm in block.arms),
        )
        for copy in range(3)
        for block in experiment.blocks
    )
    return replace(experiment, blocks=tuple(blocks))


def test_a_pass_times_every_query_and_both_runs(pg18_bin: Path) -> None:
    with ready(pg18_bin) as this:
        found = measured(this)
        with connection(this.arm) as opened:
            orders = opened.execute("SELECT count(*) FROM orders").fetchone()
    assert [*found] == [*(f"q{number}" for number in range(1, 23)), "rf1", "rf2", "power", "throughput"]
    singles = [arm.running_s for name, arm in found.items() if name not in {"power", "throughput"}]
    assert found["power"].running_s == pytest.approx(sum(singles))
    product = 1.0
    for single in singles:
        product *= single
    assert 1 / found["power"].values["throughput_tps"] == pytest.approx(product ** (1 / 24))
    assert found["throughput"].transactions == 44
    assert found["throughput"].values["throughput_tps"] == pytest.approx(44 / found["throughput"].running_s)
    assert orders == (15_000,)


@pytest.mark.long
def test_postgresql_15_makes_a_pass(pg15_bin: Path) -> None:
    with ready(pg15_bin) as this:
        assert len(measured(this)) == 26


def test_equal_rounds_ask_the_same_and_other_rounds_something_else(pg18_bin: Path) -> None:
    with ready(pg18_bin) as this:
        first, again = this.queries(0), this.queries(0)
        other = Pass(this.arm, this.design, 1, (), this.split, SMALLEST, 2).queries(0)
    assert first == again
    assert [name for name, _ in first][:4] == ["q14", "q2", "q9", "q20"]
    assert first != other


def test_arms_that_answer_differently_end_the_experiment() -> None:
    answers = Answers()
    answers.compare("round 4", "one", "q5", Answer(5, "aaaa"))
    answers.compare("round 4", "one", "q6", Answer(1, "cccc"))
    with pytest.raises(MeasurementError) as refused:
        answers.compare("round 4", "two", "q5", Answer(5, "bbbb"))
    assert str(refused.value) == (
        "q5 has different answers on the servers of one and two\n"
        "DETAIL:  5 and 5 rows, checksums aaaa and bbbb, in round 4\n"
        "HINT:  one of these servers is wrong: trust neither its data nor its figures"
    )
    answers.compare("round 5", "two", "q5", Answer(5, "bbbb"))  # another round asks something else


def test_an_error_in_one_stream_ends_the_others_and_names_the_query(pg18_bin: Path) -> None:
    with ready(pg18_bin) as this, connection(this.arm) as opened:
        opened.execute("ALTER TABLE supplier RENAME COLUMN s_acctbal TO balance")  # which Q2 alone asks for
        with pytest.raises(GeneratorFailedError) as failed:
            measure_throughput(this)
        busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%FROM lineitem%' AND state = 'active'"
        assert opened.execute(f"{busy} AND pid <> pg_backend_pid()".encode()).fetchone() == (0,)
    assert failed.value.message == (
        'q2 on the server of one failed: column "s_acctbal" does not exist (SQLSTATE 42703)'
    )


SLEEP = [("sleep", "SELECT pg_sleep(100)")]
SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"


def await_sleepers(this: Pass, count: int) -> None:
    """Wait until so many queries sleep."""
    with connection(this.arm) as opened:
        wait_until(lambda: opened.execute(SLEEPING).fetchone() == (count,))


def test_a_server_that_is_killed_in_a_throughput_run_is_named(pg18_bin: Path) -> None:
    def kill() -> None:
        await_sleepers(this, 2)
        os.kill(this.arm.postmaster_pid, signal.SIGKILL)

    with ready(pg18_bin) as this, ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        sessions = tpch_pass._Sessions(this.arm, stack)
        killed = pool.submit(kill)
        with pytest.raises(ServerCrashedError, match="the server of one ended during sleep"):
            tpch_pass._throughput(this.arm, sessions, [SLEEP, SLEEP], [])
        killed.result()


def test_an_interrupt_ends_what_runs(pg18_bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> Iterator[None]:
        await_sleepers(this, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(tpch_pass, "as_completed", interrupted)
    with ready(pg18_bin) as this, connection(this.arm) as opened:
        with ExitStack() as stack:
            sessions = tpch_pass._Sessions(this.arm, stack)
            with pytest.raises(KeyboardInterrupt):
                tpch_pass._throughput(this.arm, sessions, [SLEEP, SLEEP], [this.refresh(2)])
        assert opened.execute(SLEEPING).fetchone() == (0,)


def test_a_session_is_told_to_end_until_it_does() -> None:
    query: Future[None] = Future()
    told = []

    class Session:
        def cancel(self) -> None:
            told.append(1)
            if len(told) == 2:  # the first one came before the query had begun
                query.set_result(None)

    tpch_pass._cancel({query: cast("QuerySession", Session())})
    assert len(told) == 2


class Backends:
    """A meter that counts the sessions beside its own."""

    SQL = (
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
        "AND pid <> pg_backend_pid()"
    )

    def __init__(self, metric: str, *, reports_late: bool) -> None:
        self.METER = Meter(metric, "a test", reports_late)

    def read(self, context: MeterContext) -> Counters | None:
        (count,) = context.query(self.SQL)
        assert count is not None
        return (count,)

    def value(self, delta: Counters, transactions: int) -> float | None:
        assert transactions in {24, 44}
        return delta[0]


def test_meters_are_read_while_sessions_are_connected_and_late_ones_when_they_have_ended(
    pg18_bin: Path,
) -> None:
    now, late = "context_switches_per_transaction", "cache_hit_ratio"
    meters = [Backends(now, reports_late=False), Backends(late, reports_late=True)]
    with ready(pg18_bin) as this:
        found = measured(replace(this, meters=cast("Sequence[MeterModule]", meters)))
    runs = found["power"].values, found["throughput"].values
    assert [values[now] for values in runs] == [1, 3]
    assert [values[late] for values in runs] == [0, 0]


def test_launched_workers_are_counted_query_by_query(pg18_bin: Path) -> None:
    forced = {"min_parallel_table_scan_size": "0", "parallel_setup_cost": "0", "parallel_tuple_cost": "0"}
    pools = {"max_parallel_workers_per_gather": "2", "max_parallel_workers": "1"}
    with ready(pg18_bin, **forced, **pools) as this:
        found = measured(this)
    assert found["q1"].values["parallel_workers_launched_share"] == 0.5  # one scan, two planned, one given
    assert "parallel_workers_launched_share" not in found["rf2"].values


def test_what_meters_ask_takes_no_workers_and_the_server_is_told_as_it_is(pg18_bin: Path) -> None:
    name = "max_parallel_workers_per_gather"
    with loaded_arm(pg18_bin, variant=Variant("two", {name: "2"})) as arm:
        for _ in range(2):  # looking at the server's settings, and a checkpoint, take the limits off
            assert arm.effective([name]) == {name: "2"}
            arm.checkpoint()
            assert arm.holds(f"SELECT current_setting('{name}') = '0'")


def test_a_statement_timeout_names_the_query_and_the_variant() -> None:
    done = pgdyno(*RUN, "--factor", "statement_timeout=0,10ms")
    assert done.returncode == 1
    assert "q1 on the server of statement_timeout.10ms failed: canceling statement due to" in done.stderr
    assert "statement timeout (SQLSTATE 57014)" in done.stderr
    assert "raise statement_timeout; where the server sets none, a statement may take an hour" in done.stderr


def test_too_little_temporary_space_names_the_query(pg18_bin: Path) -> None:
    done = pgdyno(*RUN, "--factor", "temp_file_limit=64kB", "--factor", "work_mem=64kB")
    assert done.returncode == 1
    assert "on the server of temp_file_limit.64kB-work_mem.64kB failed: temporary file size" in done.stderr
    assert "raise temp_file_limit, or work_mem" in done.stderr


def test_a_full_disk_is_named_with_the_query(pg18_bin: Path) -> None:
    with ready(pg18_bin) as this, connection(this.arm) as opened:
        opened.execute(
            "CREATE FUNCTION no_room() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE disk_full USING MESSAGE = 'could not write: No space left on device'; END $$"
        )
        opened.execute("ALTER TABLE region RENAME TO regions")
        view = "SELECT r_regionkey + no_room() AS r_regionkey, r_name FROM regions"
        opened.execute(f"CREATE VIEW region AS {view}".encode())
        with pytest.raises(StorageError, match="the disk filled up during q2 on the server of one"):
            measured(this)


def test_a_wrong_answer_is_found_before_anything_is_timed(pg18_bin: Path) -> None:
    with ready(pg18_bin) as this, connection(this.arm) as opened:
        assert {*checked_plans(this.arm, SMALLEST, Answers())} == {f"q{number}" for number in range(1, 23)}
        opened.execute("UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_orderkey = 1")
        with pytest.raises(MeasurementError) as refused:
            checked_plans(this.arm, SMALLEST, Answers())
    assert refused.value.message == "the answer of q1 on the server of one is wrong"
    assert refused.value.hint is not None
    assert "nothing is measured" in refused.value.hint


def test_without_the_generator_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(GeneratorMissingError) as missing:
        find_tpchgen(tmp_path)
    assert missing.value.hint == "pip install 'pgdyno[tpch]'"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--script", "/etc/hostname"), "HINT:  leave out --script\n"),
        (("--seed", "-1"), "Invalid value for '--seed': -1 is not in the range x>=0."),
        (("--scale", "nan"), "--scale nan is not a multiple of 0.001"),
    ],
)
def test_what_it_cannot_take_is_refused_and_only_that_is_named(options: tuple[str, str], said: str) -> None:
    done = pgdyno("run", "tpch", "--embedded", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_fractions_are_for_tpch_alone() -> None:
    done = pgdyno("run", "noise-floor", "--embedded", "--workload", "pgbench-select", "--scale", "0.5")
    assert done.returncode == 2
    assert "--scale 0.5 is not an integer" in done.stderr
