"""fleet.toml: read whole, or refused with all its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import FleetFileError
from pgdyno.model.experiments.fleet import FleetOrder, MachineOrder
from pgdyno.store.fleet_file import read_fleet_file


def read(tmp_path: Path, text: str) -> FleetOrder:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return read_fleet_file(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(FleetFileError) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(str(tmp_path), "")


def test_an_order_is_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "command = \"pgdyno compare default 'big:work_mem=8MB' --embedded\"\n"
        'limit = "30m"\n[machines.db1]\n[machines."db2.example"]\n',
    )
    order = MachineOrder(("compare", "default", "big:work_mem=8MB", "--embedded"), 1800.0)
    assert found == FleetOrder("fleet", order, ("db1", "db2.example"))


def test_all_mistakes_are_listed_at_once(tmp_path: Path) -> None:
    said = refused(
        tmp_path, 'command = "rm -rf /"\nlimit = "soon"\n[machines."a/b"]\n[machines.db1]\nspeed = 1\n'
    )
    assert said.startswith('"/fleet.toml" has 4 mistakes\nDETAIL:  ')
    assert "\"command\": not a command like pgdyno compare … or pgdyno run …, found 'rm -rf /'" in said
    assert "\"limit\": not a duration like 8m, 90s or 1.5h, found 'soon'" in said
    assert 'not a name of up to 60 letters, digits, ".", "_" and "-"' in said
    assert 'unknown key "machines.db1.speed"' in said


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "..", ".a", "-a", "a b", "", "x" * 61, "a\\nb", "a=1", "é", "a,b"]
)
def test_a_name_that_is_no_part_of_a_files_name_is_refused(tmp_path: Path, name: str) -> None:
    said = refused(tmp_path, f'command = "compare a b"\n[machines."{name}"]\n')
    assert 'not a name of up to 60 letters, digits, ".", "_" and "-"' in said


def test_keys_of_an_earlier_version_are_unknown_and_their_values_are_not_said(tmp_path: Path) -> None:
    said = refused(
        tmp_path,
        'command = "compare a b"\nstore = "postgresql://fleet:secret@db/x"\n[machines.db1]\ntrials = 5\n',
    )
    assert 'unknown key "store"' in said
    assert 'unknown key "machines.db1.trials"' in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('command = "compare a b"\n', 'key "machines" is missing'),
        ('command = "compare a b"\n[machines]\n', "dictionary should have at least 1 item"),
        ('command = "accelerate"\n[machines.a]\n', "not a command like pgdyno compare"),
        ('command = "compare \'a"\n[machines.a]\n', '"command": no closing quotation, found'),
        ("command = ", '"/fleet.toml" is not valid TOML'),
    ],
)
def test_a_file_that_orders_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refused(tmp_path, text).lower() or said in refused(tmp_path, text)


@pytest.mark.parametrize("name", ["x" * 70 + ".toml", "-f.toml", "a b.toml", ".toml", "fleet", "fleet.txt"])
def test_a_file_whose_name_names_no_fleet_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FleetFileError) as caught:
        read_fleet_file(tmp_path / name)
    assert caught.value.message == f'"{name}" is not a valid name of a fleet file'
    assert caught.value.hint == "rename it, for example to fleet.toml"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError) as caught:
        read_fleet_file(tmp_path / "none.toml")
    assert caught.value.message == f'could not read "{tmp_path / "none.toml"}"'
    assert caught.value.hint == "docs/guides/fleets.md has an example"
