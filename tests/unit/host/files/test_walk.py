"""A path followed name by name: every link and directory on the way, and where it ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pgdyno.host.files.walk import walk


def test_every_directory_and_link_on_the_way_is_known(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "real" / "inner").mkdir(parents=True)
    (top / "link").symlink_to("real")
    (top / "far").symlink_to(top / "link" / "inner")
    with walk(top / "far") as reached:
        assert os.path.samestat(reached.status, (top / "real" / "inner").stat())
        assert [path for path, _ in reached.links] == [top / "far", top / "link"]
        passed = [path for path, _ in reached.directories]
        assert passed[-2:] == [top, top / "real"]
        assert passed.count(Path("/")) == 2  # at the beginning, and at the link to an absolute path


def test_a_parent_of_a_linked_directory_is_that_of_its_target(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "a" / "b").mkdir(parents=True)
    (top / "link").symlink_to("a/b")
    with walk(top / "link" / "..") as reached:
        assert os.path.samestat(reached.status, (top / "a").stat())


def test_a_file_is_reached_only_where_it_may_be_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with walk(file, may_be_file=True) as reached:
        assert reached.status.st_size == 1
    for place in (file, file / "below"):
        with pytest.raises(NotADirectoryError), walk(place):
            pass


def test_links_that_lead_to_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError) as caught, walk(tmp_path / "a"):  # noqa: PT011 — the number is compared
        pass
    assert caught.value.errno == errno.ELOOP
