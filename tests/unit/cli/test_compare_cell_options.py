"""``--cell``: options and workloads that do not go with load hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner
from tests.fix_progress import Remembered

from pgdyno.base.errors import HostsFileError, UsageError
from pgdyno.cli.main import cli
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.bundled_study import Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.load_hosts import FromCell, fewest_clients, issuing, program_of
from pgdyno.measure.measure import measure
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant
from pgdyno.remote.cells.reach import OWN_SYSBENCH
from pgdyno.studies.bundled.insert_benchmark import study as insert_benchmark
from pgdyno.studies.bundled.tpch import study as tpch
from pgdyno.workload.workload_choice import find_workloads

CELL = CellHosts(
    CellHost("db1", HostRole.SERVER, "db1", address="10.0.0.1"),
    (CellHost("client1", HostRole.LOAD, "client1"),),
)
HERE = """
[hosts.db1]
role = "server"
address = "127.0.0.1"
[hosts.client1]
role = "load"
"""
COMPARE = ("compare", "a", "b", "--embedded", "--workload", "pgbench-select", "--cell")


@pytest.fixture
def hosts_file(tmp_path: Path) -> str:
    """A cell whose server's host is this machine."""
    (tmp_path / "hosts.toml").write_text(HERE)
    return str(tmp_path / "hosts.toml")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--no-isolate"], "--isolate or --no-isolate"),
        (["--isolate", "--resume", "x"], "--isolate or --no-isolate"),
    ],
)
def test_options_that_mean_nothing_with_a_load_host_are_refused(
    hosts_file: str, options: list[str], said: str
) -> None:
    error = CliRunner().invoke(cli, [*COMPARE, hosts_file, *options], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == f"--cell cannot be combined with {said}"


def test_sql_of_a_variant_is_refused() -> None:
    study = Study("s", "?", (Variant("a"), Variant("b", {"sql": "ANALYZE"})), ("pgbench-select",))
    with pytest.raises(UsageError) as caught:
        measure(study, Conditions(None, {}, Design(), load_from=FromCell(CELL)), Remembered())
    assert caught.value.message == "b runs SQL, which --cell does not support yet"
    assert caught.value.hint == "leave out --cell: compare the schemas with load from this machine"


def test_accelerate_refuses_an_option_as_well(hosts_file: str) -> None:
    asked = ["accelerate", "--dsn", "host=/none", "--allow-load", "--cell", hosts_file]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == "--cell cannot be combined with --allow-load"


def test_fewer_load_hosts_than_none_are_refused() -> None:
    asked = [*COMPARE[:-1], "--allow-fewer"]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == "--allow-fewer requires load hosts, and none are named"
    assert error.hint == "name them: --cell FILE"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    error = CliRunner().invoke(cli, [*COMPARE, str(tmp_path / "no.toml")], standalone_mode=False).exception
    assert isinstance(error, HostsFileError)
    assert error.message == f'could not read "{tmp_path}/no.toml"'


def test_pgbench_issues_no_load_from_another_host() -> None:
    workloads = find_workloads(("pgbench-select",), generator="pgbench")
    study = Study("compare", "", (Variant("a"), Variant("b")), tuple(workloads))
    with pytest.raises(UsageError) as caught:
        FromCell(CELL).placed(cast("ScratchArena", None), study, workloads, Remembered())
    assert caught.value.message == "pgbench-select cannot be issued by a load host yet"


def test_sysbench_issues_load_from_another_host_as_well() -> None:
    workloads = find_workloads(("sysbench-read-only",), generator="sysbench").values()
    FromCell(CELL).require_issuable(workloads, Design())
    assert program_of(workloads, cast("ScratchArena", None)) is OWN_SYSBENCH  # no driver is looked for


def test_each_load_host_needs_a_client() -> None:
    workloads = find_workloads(("pgbench-select",))
    cell = replace(CELL, loads=tuple(replace(CELL.loads[0], name=f"client{n}") for n in (1, 2, 3)))
    study = Study("compare", "", (Variant("a"), Variant("b")), tuple(workloads), Design(clients=2))
    with pytest.raises(UsageError) as caught:
        FromCell(cell).placed(cast("ScratchArena", None), study, workloads, Remembered())
    assert caught.value.message == "2 clients cannot be shared by 3 load hosts"
    assert caught.value.detail == "each needs one: client1, client2, client3"
    assert caught.value.hint == "use --clients 3 or more, or keep fewer load hosts in the file"


def test_steps_have_their_load_from_the_first_host_however_few_their_clients() -> None:
    cell = replace(CELL, loads=tuple(replace(CELL.loads[0], name=f"client{n}") for n in (1, 2, 3)))
    workloads = insert_benchmark.workloads(Sizing({}, clients=1)).values()
    FromCell(cell).require_issuable(workloads, Design())
    assert [host.name for host in issuing(cell, workloads).loads] == ["client1"]
    assert issuing(cell, find_workloads(("pgbench-select",)).values()) is cell


def test_steps_have_threads_for_their_own_clients() -> None:
    workloads = insert_benchmark.workloads(Sizing({}, clients=3)).values()
    assert fewest_clients(workloads, Design(clients=8)) == 3


def test_passes_of_tpch_have_no_load_from_elsewhere() -> None:
    workloads = tpch.STUDY.workloads
    assert workloads is not None
    with pytest.raises(UsageError) as caught:
        FromCell(CELL).require_issuable(workloads(Sizing({})).values(), Design())
    assert caught.value.message.endswith(" cannot be issued by a load host yet")
