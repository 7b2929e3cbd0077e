"""Files that a user names may be anything: what is no plain file is refused rather than waited for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.cli.measuring import parsed_variant
from pgdyno.remote.inventory import read_cell
from pgdyno.results.bundle_import import import_bundle
from pgdyno.store.bundle import check_bundle
from pgdyno.store.experiment_file import read_experiment_file
from pgdyno.store.files import open_plain
from pgdyno.store.fleet_file import read_fleet_file
from pgdyno.store.workload_file import read_workload_file
from pgdyno.workload.workload_choice import digest_of, parse_script, read_copy_note

WORDS = "it is a pipe or a device: write its contents to a regular file, and name that one"
READERS: tuple[tuple[str, Callable[[Path], object]], ...] = (
    ("a.toml", read_experiment_file),
    ("a.toml", read_fleet_file),
    ("a.toml", read_cell),
    ("a.yml", read_cell),
    ("a.toml", read_workload_file),
    ("a.zip", check_bundle),
    ("a.zip", import_bundle),
    ("a.dump", digest_of),
    ("a.sql", lambda path: parse_script(str(path))),
    ("a.sql", lambda path: parsed_variant(f"idx:sql={path}")),
)


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("name", "read"), READERS)
def test_a_pipe_and_a_device_are_refused(tmp_path: Path, name: str, read: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for unending in (tmp_path / "pipe", Path("/dev/zero")):
        (tmp_path / name).symlink_to(unending)
        with pytest.raises((PgdynoError, OSError), match=re.escape(WORDS)) as caught:
            read(tmp_path / name)
        assert name in str(caught.value)
        (tmp_path / name).unlink()


@pytest.mark.timeout(30)
def test_a_pipe_is_no_note(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.dump.note")
    assert read_copy_note(tmp_path / "a.dump", "0") is None


def test_links_are_followed_and_other_errors_are_the_systems(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    (tmp_path / "link").symlink_to("a")
    with open_plain(tmp_path / "link") as file:
        assert file.read() == b"content"
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*missing'"):
        open_plain(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        open_plain(tmp_path)
