"""What a build is trained on: workloads, with the settings of the servers that they load."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import DurabilityError, UsageError, VariantError
from pgdyno.builds.training_workloads import find_training_workloads
from pgdyno.model.plans.recipe import TRAINED_ON

GENERIC = "sysbench-read-only:plan_cache_mode=force_generic_plan"


def identities(*asked: str) -> list[str]:
    return [lesson.identity for lesson in find_training_workloads(asked)]


def test_a_workload_without_settings_is_known_by_its_name_alone_as_ever() -> None:
    assert identities(*TRAINED_ON) == [
        "sysbench-read-only", "sysbench-read-write", "sysbench-write-only", "pgbench-tpcb",
    ]  # fmt: skip


def test_settings_are_of_the_server_and_of_the_identity() -> None:
    [lesson] = find_training_workloads([GENERIC])
    assert lesson.workload.name == "sysbench-read-only"
    assert lesson.variant.gucs == {"plan_cache_mode": "force_generic_plan"}
    assert lesson.identity == GENERIC


def test_neither_order_nor_case_of_settings_makes_another_lesson() -> None:
    asked = "pgbench-tpcb:work_mem=8MB,jit=off", "pgbench-tpcb:JIT=off, work_mem=8MB"
    assert identities(*asked) == ["pgbench-tpcb:jit=off,work_mem=8MB"]


def test_a_value_with_a_comma_or_a_colon_stays_one() -> None:
    asked = "pgbench-tpcb:search_path='a,b',log_line_prefix=%m:"
    [lesson] = find_training_workloads([asked])
    assert lesson.variant.gucs == {"search_path": "a,b", "log_line_prefix": "%m:"}
    assert identities(lesson.identity) == [lesson.identity]


def test_one_workload_may_be_trained_on_servers_with_different_settings() -> None:
    assert identities("sysbench-read-only", GENERIC, "sysbench-read-only") == ["sysbench-read-only", GENERIC]


@pytest.mark.parametrize("asked", ["sysbench-read:jit=off", ":jit=off", ""])
def test_a_workload_that_is_not_there_is_named_without_the_settings(asked: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_training_workloads([asked])
    assert caught.value.message == f'no workload "{asked.partition(":")[0]}"'


def test_a_files_name_ends_where_settings_begin() -> None:
    with pytest.raises(UsageError, match=r'"/no:where/shop\.toml"'):
        find_training_workloads(["/no:where/shop.toml:jit=off"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", 'variant "pgbench-tpcb:" ends after ":"'),
        ("jit", 'variant "pgbench-tpcb:jit": "jit" is not setting=value'),
        ("jit=on,jit=off", 'variant "pgbench-tpcb:jit=on,jit=off" sets "jit" twice'),
        ("config_file=/tmp/x", 'variant "pgbench-tpcb" may not set config_file to "/tmp/x"'),
        ("archive_command=id", 'variant "pgbench-tpcb" may not set archive_command to "id"'),
        ("port=1", 'variant "pgbench-tpcb" may not set port to "1"'),
    ],
)
def test_settings_are_refused_as_in_any_variant(settings: str, message: str) -> None:
    with pytest.raises(VariantError) as caught:
        find_training_workloads([f"pgbench-tpcb:{settings}"])
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("vm.swappiness=1", "vm.swappiness"),
        ("env.MALLOC_TOP_PAD_=65536", "env.MALLOC_TOP_PAD_"),
        ("process.scheduling_policy=batch", "process.scheduling_policy"),
    ],
)
def test_the_machine_and_the_start_of_the_server_stay_as_they_are(setting: str, named: str) -> None:
    with pytest.raises(VariantError) as caught:
        find_training_workloads([f"pgbench-tpcb:jit=off,{setting}"])
    assert str(caught.value) == (
        f'--train "pgbench-tpcb:jit=off,{setting}": {named} is not a PostgreSQL setting\n'
        "DETAIL:  training changes neither the machine nor how a server is started\n"
        "HINT:  omit it"
    )


def test_what_loses_data_is_in_no_plan_and_so_in_no_training() -> None:
    with pytest.raises(DurabilityError) as caught:
        find_training_workloads(["pgbench-tpcb:synchronous_commit=off"])
    assert str(caught.value) == (
        '--train "pgbench-tpcb:synchronous_commit=off" is not durable: synchronous_commit=off\n'
        "DETAIL:  plans never contain such a setting, so no server would run as the build was trained\n"
        "HINT:  omit it"
    )
