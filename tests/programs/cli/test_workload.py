"""Editing a workload's file with an editor of the test's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.cli.workload import edit_workload

WORKLOAD = """\
[workload]
name = "w"
server_version = "18"
cluster = 1
database = "d"
seconds = 1
clients = 1
[[statement]]
name = "s"
sql = "SELECT 1"
[[transaction]]
weight = 1
call = [{statement = "s"}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "w.toml"
    path.write_text(WORKLOAD)
    path.chmod(0o600)
    return path


def use_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    """Let $EDITOR be a shell script, with an argument of its own before the file."""
    program = tmp_path / "editor.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{program}' --wait")


def test_a_change_replaces_the_file_and_keeps_its_mode(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_editor(monkeypatch, tmp_path, 'sed -i s/clients.*/clients\\ =\\ 7/ "$2"')
    assert edit_workload(file)
    assert "clients = 7" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(one.name for one in tmp_path.iterdir()) == ["editor.sh", "w.toml"]


def test_a_file_that_is_left_alone_is_as_it_was(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_editor(monkeypatch, tmp_path, "exit 0")
    assert not edit_workload(file)
    assert file.read_text() == WORKLOAD


def test_mistakes_are_named_and_kept_for_the_next_time(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_editor(monkeypatch, tmp_path, 'sed -i s/clients.*/clients\\ =\\ 0/ "$2"')
    with pytest.raises(UsageError) as caught:
        edit_workload(file)
    assert caught.value.detail == ('"workload.clients": input should be greater than or equal to 1, found 0')
    assert caught.value.hint == f'"{file}" is unchanged; run the same command to continue with "{file}.draft"'
    assert file.read_text() == WORKLOAD
    use_editor(monkeypatch, tmp_path, 'sed -i s/clients.*/clients\\ =\\ 2/ "$2"')
    assert edit_workload(file)
    assert "clients = 2" in file.read_text()


def test_an_editor_that_is_missing_or_fails_is_said(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_editor(monkeypatch, tmp_path, "exit 3")
    with pytest.raises(UsageError, match="exited with status 3"):
        edit_workload(file)
    monkeypatch.setenv("EDITOR", "/nowhere/vi")
    with pytest.raises(UsageError, match='could not run the editor "/nowhere/vi"'):
        edit_workload(file)
    (tmp_path / "w.toml.draft").unlink()
    file.write_text("nothing")
    with pytest.raises(UsageError, match="is not valid TOML"):
        edit_workload(file)


@pytest.mark.root
def test_a_draft_in_a_directory_of_others_is_neither_made_nor_followed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor would write what a link there leads to, with root's rights."""
    victim, place = tmp_path / "victim", tmp_path / "others"
    victim.write_text(WORKLOAD)
    place.mkdir()
    os.chown(place, 65534, 65534)
    theirs = place / "w.toml"
    file.rename(theirs)
    use_editor(monkeypatch, tmp_path, 'echo written > "$2"')
    for has_link in (False, True):
        if has_link:
            (place / "w.toml.draft").symlink_to(victim)
        with pytest.raises(RefusedError) as caught:
            edit_workload(theirs)
        assert f"{place} on its path belongs to nobody, but you are root" in caught.value.message
        assert caught.value.hint == "copy the workload to a directory that you own"
    assert victim.read_text() == WORKLOAD
    assert [one.name for one in place.iterdir() if not one.is_symlink()] == ["w.toml"]


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_draft_that_is_a_link_is_not_followed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text(WORKLOAD)
    make(victim, tmp_path / "w.toml.draft")
    use_editor(monkeypatch, tmp_path, 'echo written > "$2"')
    with pytest.raises(RefusedError, match=r"w.toml.draft\" is a link, or not a regular file"):
        edit_workload(file)
    assert victim.read_text() == WORKLOAD
