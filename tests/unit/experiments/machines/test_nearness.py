"""How near an earlier experiment is: by which facts, and in words."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_steps import experiment as of_ten_steps

from pgdyno.experiments.machines.nearness import Circumstances, circumstances_of, nearness

GB = 1 << 30
HERE = Circumstances(
    major=18,
    processor="Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
    cpus=2,
    memory_bytes=8 * GB,
    data_bytes=1 * GB,
    disks="solid-state disks",
    machine="a virtual machine",
    loads={READ_ONLY: "transactions that only read", READ_WRITE: "transactions that write"},
)


def words(**there: Any) -> str:
    return nearness(replace(HERE, **there), HERE).words.replace("\N{NO-BREAK SPACE}", " ")


def test_equal_circumstances_are_no_step_apart() -> None:
    assert nearness(HERE, HERE).steps == 0
    assert words() == "host and load as here"


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"major": 17}, "PostgreSQL 17 there, 18 here"),
        ({"cpus": 64}, "64 CPUs there, 2 here"),
        ({"memory_bytes": 256 * GB}, "256 GB of memory there, 8 GB here"),
        ({"memory_bytes": 1 * GB, "data_bytes": GB / 8}, "1 GB of memory there, 8 GB here"),
        ({"data_bytes": 32 * GB}, "data are 400 % of the memory there, 12.5 % here"),
        ({"loads": {"mine": "queries that only read"}},
         "queries that only read there, transactions that only read and transactions that write here"),
        ({"loads": {READ_ONLY: "queries that only read"}},  # a name says nothing without the kind
         "queries that only read there, transactions that only read and transactions that write here"),
        ({"processor": None, "cpus": None, "memory_bytes": None}, "its host is not recorded"),
        ({"major": None}, "its PostgreSQL is not recorded"),
    ],
)  # fmt: skip
def test_what_is_too_far_says_why(there: dict[str, Any], said: str) -> None:
    found = nearness(replace(HERE, **there), HERE)
    assert found.why_not.replace("\N{NO-BREAK SPACE}", " ") == said


@pytest.mark.parametrize(
    ("there", "steps", "said"),
    [
        ({"cpus": 4}, 1, "4 CPUs there, 2 here"),
        ({"cpus": 1}, 1, "1 CPU there, 2 here"),
        ({"cpus": 8}, 2, "8 CPUs there, 2 here"),
        ({"cpus": None}, 1, "unknown CPUs there, 2 here"),
        ({"memory_bytes": 16 * GB}, 1, "16 GB of memory there, 8 GB here"),
        ({"memory_bytes": 8.5 * GB}, 0, "host and load as here"),
        ({"data_bytes": GB // 100}, 0, "host and load as here"),  # both are read from memory
        ({"data_bytes": 8 * GB}, 1, "data are 100 % of the memory there, 12.5 % here"),
        ({"processor": "Intel(R) Xeon(R) Gold 6252 CPU @ 2.10GHz"}, 1,
         "Intel Xeon Gold 6252 there, Intel Xeon Platinum 8259CL here"),
        ({"processor": "AMD EPYC 7571"}, 2, "AMD EPYC 7571 there, Intel Xeon Platinum 8259CL here"),
        ({"disks": "rotating disks"}, 2, "rotating disks there, solid-state disks here"),
        ({"machine": "a real machine"}, 1, "a real machine there, a virtual machine here"),
        ({"machine": None}, 1, "unknown there, a virtual machine here"),
        ({"loads": {}}, 1, "unknown load there"),
        ({"loads": None}, 1, "unknown load there"),
        ({"loads": {"mine": "transactions that write"}}, 1,
         "mine there, sysbench-read-only and sysbench-read-write here"),
        ({"loads": {READ_ONLY: "transactions that write"}}, 1,
         "transactions that write there, transactions that only read and transactions that write here"),
    ],
)  # fmt: skip
def test_other_differences_are_steps(there: dict[str, Any], steps: float, said: str) -> None:
    found = nearness(replace(HERE, **there), HERE)
    assert found.why_not == ""
    assert found.steps == pytest.approx(steps)
    assert words(**there) == said


def test_long_names_and_many_workloads_of_a_document_are_cut() -> None:
    assert words(processor="X" * 1_000_000) == f"{'X' * 60} there, Intel Xeon Platinum 8259CL here"
    here = "sysbench-read-only and sysbench-read-write here"
    long = {"Y" * 1_000_000: "transactions that write"}
    assert words(loads=long) == f"{'Y' * 60} there, {here}"
    many = {f"mine-{number}": "transactions that write" for number in range(1000)}
    assert words(loads=many) == f"mine-0, mine-1 and 998 more there, {here}"


def test_steps_add_up_and_the_largest_is_said_first() -> None:
    found = nearness(replace(HERE, cpus=8, machine="a real machine"), HERE)
    assert found.steps == pytest.approx(3)
    assert found.words.startswith("8 CPUs there, 2 here; a real machine there")


def test_what_is_not_known_here_is_not_compared() -> None:
    here = Circumstances(major=18, cpus=2, memory_bytes=8 * GB)
    assert nearness(HERE, here).steps == 0


def test_a_recorded_experiment_tells_its_circumstances() -> None:
    found = circumstances_of(experiment())
    assert found == Circumstances(
        major=18,
        processor="Example CPU 9000 @ 2.60GHz",
        cpus=6,  # of 8, a quarter for the client
        memory_bytes=10 * GB,  # the limit, not the 32 GB of the machine
        data_bytes=2_469_606_195,
        disks="solid-state disks",
        machine="a virtual machine",
        loads={READ_ONLY: "transactions that only read", READ_WRITE: "transactions that write"},
    )


def test_steps_of_a_benchmark_are_another_kind_of_load() -> None:
    loads = circumstances_of(of_ten_steps()).loads
    assert loads is not None
    assert set(loads.values()) == {"rows that write", "queries that write"}


def with_host(path: str, value: object) -> Circumstances:
    host: Any = {**experiment().host}
    above, _, name = path.rpartition(".")
    fact = {"value": value, "source": "a bundle"}
    host = {**host, above: {**host[above], name: fact}} if above else {**host, name: fact}
    return circumstances_of(replace(experiment(), host=host))


def test_a_virtual_disk_that_says_that_it_rotates_is_of_unknown_kind() -> None:
    disks = [{"name": "vda", "is_rotational": {"value": True, "source": "/sys"}}]
    assert with_host("block_devices", disks).disks is None
    of_a_container = replace(experiment(), host={
        **experiment().host,
        "cpu": {"virtualisation": {"value": "container:docker", "source": "/proc"}},
        "block_devices": {"value": disks, "source": "/sys"},
    })  # fmt: skip
    assert circumstances_of(of_a_container).machine == "a real machine"
    assert circumstances_of(of_a_container).disks == "rotating disks"


@pytest.mark.parametrize("value", [-1, 0, True, "many", None, math.nan, math.inf, 10**400])
def test_impossible_amounts_of_a_document_are_unknown(value: object) -> None:
    host = {"memory": {"total_bytes": {"value": value, "source": "a bundle"}}}
    server = {"version": value, "databases_bytes": {"value": value, "source": "a bundle"}}
    found = circumstances_of(replace(experiment(), host=host, server=server))
    assert (found.memory_bytes, found.data_bytes, found.cpus) == (None, None, None)
    assert nearness(found, HERE).why_not


def test_an_experiment_without_facts_is_too_far() -> None:
    bare = circumstances_of(replace(experiment(), host={}, server={}))
    assert nearness(bare, HERE).why_not == "its PostgreSQL is not recorded; its host is not recorded"
