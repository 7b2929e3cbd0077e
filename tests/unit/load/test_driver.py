"""What pgdyno-driver is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.load._contract import LoadRequest, Target
from pgdyno.load.driver import ArmTarget, conninfo, job, job_options
from pgdyno.model.experiments.workload import DataSet, ResetPolicy, Statement, Workload

TARGET = Target("/sockets", 5432, "postgres", "bench")
WORKLOAD = Workload("w", "", DataSet("t_bit", 20, 60_236), ResetPolicy.KEEP)


def test_settings_of_sessions_are_options_as_libpq_has_them() -> None:
    settings = {"work_mem": "4MB", "search_path": r"a b, c\d"}
    arm = ArmTarget("a", replace(TARGET, session_settings=settings))
    request = LoadRequest(2, 4, 1, 0, Path(), cpus=(0,))
    (told,) = json.loads(job([arm], "query", {}, request))["arms"]
    assert told["target"]["options"] == r"-c work_mem=4MB -c search_path=a\ b,\ c\\d"
    assert (
        "options" not in json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))["arms"][0]["target"]
    )
    assert conninfo(TARGET) == "host='/sockets' port='5432' user='postgres' dbname='bench'"


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_statements_travel_as_it_is_asked_for(protocol: str) -> None:
    request = LoadRequest(2, 4, 1, 0, Path(), protocol=protocol)
    assert json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))["mode"] == protocol


def test_a_statement_is_issued_as_it_is_and_a_data_set_by_its_size() -> None:
    assert job_options(replace(WORKLOAD, kind=Statement("SELECT 1"))) == {
        "sql": "SELECT 1",
        "rolled_back": False,
    }
    writing = replace(WORKLOAD, kind=Statement("DELETE FROM t_bit", is_rolled_back=True))
    assert job_options(writing) == {"sql": "DELETE FROM t_bit", "rolled_back": True}
    assert job_options(WORKLOAD) == {"rows": 20_000}


def test_the_job_for_a_part_of_a_load_says_so() -> None:
    request = LoadRequest(2, 4, 1, 0, Path())
    assert "is_part" not in json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))
    part = replace(request, is_part=True)
    assert json.loads(job([ArmTarget("a", TARGET)], "query", {}, part))["is_part"] is True


def test_the_job_for_clients_with_tables_of_their_own_names_the_first_ones_schema() -> None:
    request = LoadRequest(2, 4, 1, 0, Path())
    assert "first_schema" not in json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))
    own = replace(request, first_schema=3)
    assert json.loads(job([ArmTarget("a", TARGET)], "query", {}, own))["first_schema"] == 3


def test_an_open_loop_has_a_rate_and_a_closed_one_none() -> None:
    request = LoadRequest(2, 4, 1, 0, Path())
    assert "rate" not in json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))
    assert "think_times_s" not in json.loads(job([ArmTarget("a", TARGET)], "query", {}, request))
    pausing = replace(request, think_times_s=(0.5, 2.0))
    assert json.loads(job([ArmTarget("a", TARGET)], "query", {}, pausing))["think_times_s"] == [0.5, 2.0]
    open_loop = replace(request, rate_tps=12.5)
    assert json.loads(job([ArmTarget("a", TARGET)], "query", {}, open_loop))["rate"] == 12.5
