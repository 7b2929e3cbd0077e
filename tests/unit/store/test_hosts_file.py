"""hosts.toml: read strictly, every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import HostsFileError
from pgdyno.model.cells.cell import CellHost, CellHosts, HostRole
from pgdyno.store.hosts_file import HostTable, read_hosts_file

GUIDE = Path(__file__).parents[3] / "docs/guides/two-machines.md"
NO_DESTINATION = "not a destination of ssh like db1, postgres@db1 or ssh://postgres@db1:2222"
GOOD = '[hosts.db1]\nrole = "server"\n[hosts.client1]\nrole = "load"\n'


def read(directory: Path, text: str) -> CellHosts:
    path = directory / "hosts.toml"
    path.write_text(text)
    return read_hosts_file(path)


def refused(directory: Path, text: str) -> HostsFileError:
    with pytest.raises(HostsFileError) as caught:
        read(directory, text)
    return caught.value


def test_a_host_is_reached_by_its_name_unless_told_otherwise(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == CellHosts(
        CellHost("db1", HostRole.SERVER, "db1"), (CellHost("client1", HostRole.LOAD, "client1"),)
    )


def test_every_key_reaches_its_place(tmp_path: Path) -> None:
    for name in ("config", "key"):
        (tmp_path / name).touch()
    text = (
        'ssh_config = "config"\nprobe_port = 5433\n'
        '[hosts.client1]\nrole = "load"\nssh = "ssh://ada@[fd00::2]:2222"\n'
        'jump = "gate,ada@inner"\nkey = "key"\n'
        'cpus = "0-2,8"\n'
        '[hosts.db1]\nrole = "server"\naddress = "FD00::1"\npostgresql = "/usr/lib/postgresql/17/bin"\n'
    )
    cell = read(tmp_path, text)
    assert cell == CellHosts(
        server=CellHost(
            "db1", HostRole.SERVER, "db1", address="fd00::1", postgresql="/usr/lib/postgresql/17/bin"
        ),
        loads=(
            CellHost(
                "client1",
                HostRole.LOAD,
                "ssh://ada@[fd00::2]:2222",
                jump="gate,ada@inner",
                key=tmp_path / "key",
                cpus=(0, 1, 2, 8),
            ),
        ),
        ssh_config=tmp_path / "config",
        probe_port=5433,
    )
    assert [host.name for host in cell.all] == ["db1", "client1"]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ('role = "client"', "\"hosts.x.role\": input should be 'server' or 'load', found 'client'"),
        ('role = "load"\nport = 22', 'unknown key "hosts.x.port"'),
        ('ssh = "x"', 'key "hosts.x.role" is missing'),
        ('role = "load"\nssh = "-oX=id"', f"\"hosts.x.ssh\": {NO_DESTINATION}, found '-oX=id'"),
        ('role = "load"\nssh = "db1;id"', f"\"hosts.x.ssh\": {NO_DESTINATION}, found 'db1;id'"),
        ('role = "load"\njump = "gate,$(id)"', f"\"hosts.x.jump\": {NO_DESTINATION}, found 'gate,$(id)'"),
        ('role = "load"\ncpus = "4-"', "\"hosts.x.cpus\": not a list of CPUs like 0-3,8, found '4-'"),
        ('role = "load"\ncpus = 4', '"hosts.x.cpus": not a list of CPUs like 0-3,8, found 4'),
        (
            'role = "load"\naddress = "10.0.0.1/24"',
            "\"hosts.x.address\": neither an address nor the name of a host, found '10.0.0.1/24'",
        ),
        (
            'role = "load"\npostgresql = "bin"',
            "\"hosts.x.postgresql\": not an absolute path, found 'bin'",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_value(tmp_path: Path, line: str, detail: str) -> None:
    error = refused(tmp_path, f"{GOOD}[hosts.x]\n{line}\n")
    assert error.message == f'"{tmp_path}/hosts.toml" has a mistake'
    assert error.detail == detail


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    error = refused(tmp_path, 'probe_port = "ssh"\n[hosts.db1]\nrole = 1\n')
    assert error.message == f'"{tmp_path}/hosts.toml" has 2 mistakes'


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('[hosts.a]\nrole = "server"\n', "1 servers and 0 load hosts"),
        ('[hosts.a]\nrole = "load"\n', "0 servers and 1 load hosts"),
        (f'{GOOD}[hosts.b]\nrole = "server"\n', "2 servers and 1 load hosts"),
    ],
)
def test_a_cell_has_one_server_and_some_load(tmp_path: Path, text: str, count: str) -> None:
    error = refused(tmp_path, text)
    assert error.message == f'"{tmp_path}/hosts.toml" has {count}'
    assert error.detail == "a cell has one server and one load host or more"


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    error = refused(tmp_path, f'ssh_config = "missing"\n{GOOD}')
    assert error.message == f'file "{tmp_path}/missing" does not exist'


def test_the_home_of_a_user_that_there_is_not_has_no_file(tmp_path: Path) -> None:
    error = refused(tmp_path, f'ssh_config = "~nobody-of-this-name/config"\n{GOOD}')
    assert error.message == 'file "~nobody-of-this-name/config" does not exist'


def test_a_missing_file_leads_to_the_guide(tmp_path: Path) -> None:
    with pytest.raises(HostsFileError) as caught:
        read_hosts_file(tmp_path / "hosts.toml")
    assert str(caught.value) == (
        f'could not read "{tmp_path}/hosts.toml"\n'
        "DETAIL:  No such file or directory\n"
        "HINT:  docs/guides/two-machines.md has an example; name another file with --cell"
    )


def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path) -> None:
    error = refused(tmp_path, "[hosts.db1\n")
    assert error.message == f'"{tmp_path}/hosts.toml" is not valid TOML'
    assert "line 1" in (error.detail or "")


@pytest.mark.parametrize(("number", "loads"), [(1, ["client1"]), (2, ["client1", "client2"])])
def test_the_examples_of_the_guide_are_cells(tmp_path: Path, number: int, loads: list[str]) -> None:
    cell = read(tmp_path, GUIDE.read_text().split("```toml\n")[number].partition("```")[0])
    assert (cell.server.name, [one.name for one in cell.loads]) == ("db1", loads)


@pytest.mark.parametrize("key", HostTable.model_fields)
def test_the_guide_explains_every_key(key: str) -> None:
    assert f"| `{key}` |" in GUIDE.read_text()
