"""``--cell`` of all commands: what runs here, and what is refused before anything is sent."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgdyno.base.errors import UsageError
from pgdyno.cli._on_cell import _without_cell
from pgdyno.cli.main import cli
from pgdyno.cli.output import ON_CELL, Relayed
from pgdyno.store.hosts_file import hosts_file_text, read_hosts_file

ELSEWHERE = "198.51.100.7"  # of nobody: for documentation
CELL = """
ssh_config = "ssh_config"
probe_port = 5433
[hosts.db1]
role = "server"
ssh = "ada@gate"
address = "{}"
pgdyno = "/opt/pgdyno/bin/pgdyno"
cpus = "0-2"
[hosts.client1]
role = "load"
ssh = "client1.example.org"
key = "key"
jump = "gate"
"""


def hosts_file(directory: Path, address: str = ELSEWHERE) -> str:
    for name in ("ssh_config", "key"):
        (directory / name).touch()
    (directory / "hosts.toml").write_text(CELL.format(address))
    return str(directory / "hosts.toml")


@pytest.mark.parametrize("name", sorted(ON_CELL))
def test_every_command_that_works_on_a_server_takes_a_cell(name: str) -> None:
    assert "--cell FILE" in CliRunner().invoke(cli, [name, "--help"]).output


def test_on_the_servers_host_a_command_runs_as_usual(tmp_path: Path) -> None:
    asked = ["run", "--list", "--cell", hosts_file(tmp_path, "127.0.0.1")]
    result = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\nclients  " in result.stdout


def test_a_command_that_takes_no_load_from_load_hosts_says_so(tmp_path: Path) -> None:
    asked = ["profile", "nothing", "--embedded", "--cell", hosts_file(tmp_path, "127.0.0.1")]
    result = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert result.exit_code == 1  # there is no such workload
    assert result.stderr == (
        "pgdyno: WARNING:  db1 generates the load itself: profile does not use load hosts yet (client1)\n"
    )


def test_a_search_on_a_running_server_says_that_its_load_is_from_there(tmp_path: Path) -> None:
    cell = hosts_file(tmp_path, "127.0.0.1")
    asked = ["tune", "--dsn", "host=/nowhere", "--allow-load", "--cell", cell]
    result = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert result.exit_code == 1  # there is no such server
    assert result.stderr == (
        "pgdyno: WARNING:  db1 generates the load itself: tune --dsn does not use load hosts yet (client1)\n"
    )
    error = CliRunner().invoke(cli, [*asked, "--allow-fewer"], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == "--allow-fewer requires load hosts, and a search on a running server uses none"


def test_load_hosts_have_no_part_in_measuring_a_running_server(tmp_path: Path) -> None:
    asked = ["run", "clients", "--dsn", "x", "--cell", hosts_file(tmp_path, "127.0.0.1")]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == "--cell cannot be combined with --dsn"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("inspect", "--pgdata", "main"), '--pgdata "main"'),
        (("compare", "a", "b", "--workload", "shop.toml"), '--workload "shop.toml"'),
        (("compare", "a", "b", "--script", "my.sql@2"), '--script "my.sql@2"'),
        (("run", "./buffers.toml"), 'NAME|FILE "./buffers.toml"'),
        (("profile", "tpcb", "--output", "page.html"), '--output "page.html"'),
    ],
)
def test_a_file_that_would_be_looked_for_beside_us_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    asked = [*words, "--cell", hosts_file(tmp_path)]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == f"{said} would be a file of db1, where the command runs"
    assert error.detail == "pgdyno copies no files between the machines"
    assert error.hint == "copy it there, and give its absolute path on db1"


def test_sql_of_a_variant_is_refused(tmp_path: Path) -> None:
    asked = ["compare", "a", "b:jit=off, sql=x.sql", "--cell", hosts_file(tmp_path)]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == '"b:jit=off, sql=x.sql" runs SQL, which --cell does not support yet'
    assert error.hint == "leave out --cell: compare the schemas with load from this machine"


def test_load_hosts_have_to_be_told_where_the_server_is(tmp_path: Path) -> None:
    file = Path(hosts_file(tmp_path))
    file.write_text(file.read_text().replace(f'address = "{ELSEWHERE}"', ""))
    asked = ["compare", "a", "b", "--cell", str(file)]
    error = CliRunner().invoke(cli, asked, standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert error.message == "hosts.toml has no address of db1 for load hosts"


def test_all_words_but_the_cell_are_carried() -> None:
    words = ("a", "--cell", "hosts.toml", "--json", "--cell=other.toml", "--", "--cell", "b")
    assert tuple(_without_cell(words)) == ("a", "--json", "--", "--cell", "b")


def test_a_carried_cell_names_no_file_of_this_machine(tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    carried.mkdir()
    (carried / "hosts.toml").write_text(hosts_file_text(read_hosts_file(Path(hosts_file(tmp_path)))))
    cell = read_hosts_file(carried / "hosts.toml")
    load = cell.loads[0]
    assert (cell.ssh_config, cell.probe_port, cell.server.pgdyno) == (None, 5433, None)
    assert (cell.server.address, cell.server.cpus) == (ELSEWHERE, (0, 1, 2))
    assert (load.name, load.destination, load.jump, load.key) == (
        "client1",
        "client1.example.org",
        "gate",
        None,
    )


class Terminal(io.TextIOWrapper):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "shown"),
    [(Terminal, "100 µs \N{REPLACEMENT CHARACTER}[2J\n"), (io.TextIOWrapper, "100 µs \x1b[2J\n")],
)
def test_output_of_another_machine_does_not_steer_a_terminal(
    kind: type[io.TextIOWrapper], shown: str
) -> None:
    written = io.BytesIO()
    stream = kind(written, encoding="utf-8")
    relayed = Relayed(stream)
    whole = "100 µs \x1b[2J\n".encode()
    relayed.write(whole[:5])  # the half of µ
    relayed.write(whole[5:])
    assert written.getvalue().decode() == shown
