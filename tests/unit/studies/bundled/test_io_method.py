"""What ``pgdyno run io-method`` compares, by what the server can do."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.host.probes import IoUringCause, IoUringObstacle
from pgdyno.measure.bundled_study import IoSupport, Sizing, StudyContext
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import io_method

CONDITIONS = {"max_parallel_workers_per_gather": "0"}
FORBIDDEN = IoUringObstacle(IoUringCause.FORBIDDEN, "could not setup io_uring queue: …", "look for a filter")


def study(*, major: int = 18, cpus: int = 2, obstacle: IoUringObstacle | None = None) -> Study:
    context = StudyContext(
        Variant("default", io_method.settings(Sizing())),
        io_method.STUDY.measures,
        io_method.STUDY.design,
        io=(IoSupport(f"PostgreSQL {major}.1 (mine)", major, cpus, obstacle),),
    )
    return io_method.study(context)


def test_sync_is_compared_with_worker_and_io_uring() -> None:
    assert {v.name: v.settings for v in study().variants} == {
        "sync": {**CONDITIONS, "io_method": "sync"},
        "worker": {**CONDITIONS, "io_method": "worker"},
        "io_uring": {**CONDITIONS, "io_method": "io_uring"},
    }
    assert study().baseline == "sync"


@pytest.mark.parametrize(("cpus", "workers"), [(16, "4"), (64, "16"), (256, "32")])
def test_a_quarter_of_many_cpus_is_an_arm_within_the_servers_limit(cpus: int, workers: str) -> None:
    found = study(cpus=cpus)
    assert [v.name for v in found.variants] == ["sync", "worker", f"worker-{workers}", "io_uring"]
    assert found.variants[2].settings["io_workers"] == workers


@pytest.mark.parametrize("cpus", [1, 2, 12])
def test_with_few_cpus_the_default_number_of_workers_stands_alone(cpus: int) -> None:
    assert [v.name for v in study(cpus=cpus).variants] == ["sync", "worker", "io_uring"]


def test_io_uring_that_does_not_work_is_left_out_with_its_cause() -> None:
    found = study(obstacle=FORBIDDEN)
    assert [v.name for v in found.variants] == ["sync", "worker"]
    assert found.notes[-1] == (
        "io_uring is left out on PostgreSQL 18.1 (mine): forbidden by the kernel "
        "(could not setup io_uring queue: …); look for a filter"
    )


def on_servers(*servers: IoSupport) -> Study:
    return io_method.study(
        StudyContext(Variant("default"), io_method.STUDY.measures, io_method.STUDY.design, io=servers)
    )


def test_io_uring_is_an_arm_only_on_servers_that_can_use_it() -> None:
    found = on_servers(
        IoSupport("PostgreSQL 18.1 (a)", 18, 2, None, "a"),
        IoSupport("PostgreSQL 18.2 (b)", 18, 2, FORBIDDEN, "b"),
    )
    assert [(v.server, v.name) for v in found.variants] == [
        ("a", "sync"),
        ("a", "worker"),
        ("a", "io_uring"),
        ("b", "sync"),
        ("b", "worker"),
    ]
    assert found.question == (
        "Which io_method serves scans best on PostgreSQL 18.1 (a) and PostgreSQL 18.2 (b)?"
    )
    (left_out,) = [note for note in found.notes if "left out" in note]
    assert left_out.startswith("io_uring is left out on PostgreSQL 18.2 (b): forbidden by the kernel")


def test_an_old_server_is_refused_by_name_wherever_it_stands() -> None:
    old = IoSupport("PostgreSQL 17.1 (b)", 17, 2, FORBIDDEN, "b")
    with pytest.raises(UsageError, match=r"PostgreSQL 17\.1 \(b\) has no io_method"):
        on_servers(IoSupport("PostgreSQL 18.1 (a)", 18, 2, None, "a"), old)


def test_what_holds_for_all_arms_is_noted() -> None:
    assert "max_parallel_workers_per_gather = 0" in study().notes[0]
    assert not any("left out" in note for note in study().notes)


def test_a_server_before_18_is_refused_with_how_to_get_one() -> None:
    with pytest.raises(UsageError) as caught:
        study(major=17)
    assert caught.value.message == "PostgreSQL 17.1 (mine) has no io_method: it came with PostgreSQL 18"
    assert caught.value.hint == (
        "name a newer server, or build one: pgdyno server install --from-source 18 --with-liburing"
    )


def test_three_arms_in_balanced_order_fit_a_block() -> None:
    assert io_method.STUDY.design.block_s >= 3 * 3 * io_method.STUDY.design.slice_s
