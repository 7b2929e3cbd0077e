"""``pgdyno cell check`` in a directory where somebody else has put the cell's files, or programs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("home")]

NOBODY = 65534
HOSTS = """
ssh_config = "lab_ssh_config"
[hosts.db1]
role = "server"
ssh = "db1.invalid"
[hosts.client1]
role = "load"
ssh = "client1.invalid"
key = "lab_key"
"""
INVENTORY = "[server]\ndb1.invalid\n[load]\nclient1.invalid ansible_ssh_private_key_file=lab_key\n"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory: a cell whose ssh_config has a program run, which leaves a file."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-lab-") as name:
        lab = Path(name)
        (lab / "hosts.toml").write_text(HOSTS)
        (lab / "inventory.ini").write_text(INVENTORY)
        (lab / "lab_key").touch(0o600)
        (lab / "lab_ssh_config").write_text(f"Host *\n  ProxyCommand sh -c 'id -u > {lab}/ran'\n")
        monkeypatch.chdir(lab)
        yield lab


def test_a_cell_of_ones_own_is_used(lab: Path) -> None:
    """Here its program runs: the other tests forbid what works."""
    pgdyno("cell", "check", "--limit", "10s")
    assert (lab / "ran").read_text() == "0\n"


@pytest.mark.parametrize("owned", ["hosts.toml", "lab_ssh_config", "lab_key", "."])
@pytest.mark.parametrize("command", [("cell", "check"), ("status", "--cell", "hosts.toml")])
def test_what_another_user_could_have_written_has_ssh_run_nothing(
    lab: Path, owned: str, command: tuple[str, ...]
) -> None:
    os.chown(lab / owned, NOBODY, NOBODY)
    done = pgdyno(*command)
    assert not (lab / "ran").exists()
    assert done.returncode == 4
    mending = "move it to a directory that you own"
    if owned != ".":
        mending = f"chown root {owned if owned == 'hosts.toml' else lab / owned}; or {mending}"
    assert "belongs to nobody, but you are root" in done.stderr
    assert mending in done.stderr
    assert "it decides which programs ssh runs here, as you" in done.stderr


@pytest.mark.parametrize("file", ["hosts.toml", "inventory.ini"])
def test_a_cell_file_that_everybody_can_write_is_not_used(lab: Path, file: str) -> None:
    (lab / file).chmod(0o666)
    done = pgdyno("cell", "check", "--cell", file)
    assert not (lab / "ran").exists()
    assert done.returncode == 4
    assert f"ERROR:  {file} is not used: it can be changed by everyone" in done.stderr
    assert f"chmod go-w {file}" in done.stderr


@pytest.mark.parametrize("is_linked", [False, True])
def test_variables_that_another_user_could_have_written_are_not_read(lab: Path, *, is_linked: bool) -> None:
    directory = lab / "group_vars" / "load"
    directory.parent.mkdir()
    if is_linked:
        (lab / "elsewhere").mkdir()
        directory.symlink_to(lab / "elsewhere")
        (lab / "elsewhere" / "back").symlink_to(lab / "group_vars")
    else:
        directory.mkdir()
    (directory / "main.yml").write_text("ansible_user: ada\n")
    os.chown(directory / "main.yml", NOBODY, NOBODY)
    done = pgdyno("cell", "check", "--cell", "inventory.ini")
    assert done.returncode == 4
    assert "group_vars/load/main.yml is not used: it belongs to nobody, but you are root" in done.stderr


def test_an_inventory_beside_which_others_can_put_variables_is_not_used(lab: Path) -> None:
    lab.chmod(0o1777)  # as /tmp
    done = pgdyno("cell", "check", "--cell", "inventory.ini")
    assert done.returncode == 4
    assert f"{lab} is not used: it can be changed by everyone" in done.stderr
    assert "move the inventory to a directory where no other user can add variables" in done.stderr
    assert not (lab / "ran").exists()


def test_a_servers_program_of_another_user_does_not_run_as_root(lab: Path) -> None:
    """The server's host is this machine, whose check is by nobody's rights but that user's."""
    lab.chmod(0o755)
    ran, programs = lab / "ran", lab / "programs"
    ran.touch()
    ran.chmod(0o666)
    programs.mkdir()
    (programs / "postgres").write_text(f"#!/bin/sh\nid -u >> {ran}\necho 'postgres (PostgreSQL) 17.2'\n")
    (programs / "postgres").chmod(0o755)
    os.chown(programs / "postgres", NOBODY, NOBODY)
    (lab / "hosts.toml").write_text(
        f'[hosts.db1]\nrole = "server"\naddress = "127.0.0.1"\npostgresql = "{programs}"\n'
        '[hosts.client1]\nrole = "load"\nssh = "client1.invalid"\n'
    )
    done = pgdyno("cell", "check", "--limit", "20s", "--json")
    assert ran.read_text() == f"{NOBODY}\n"
    server = json.loads(done.stdout)["check"]["hosts"][0]
    assert server["answer"]["facts"]["postgresql"][0]["version"] == "postgres (PostgreSQL) 17.2"
