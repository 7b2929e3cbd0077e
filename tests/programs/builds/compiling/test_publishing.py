"""A finished installation gets to its place as a whole, and belongs to whoever puts it there."""

from __future__ import annotations

import os
import stat
import tarfile
from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError
from pgdyno.builds.compiling.publishing import hidden, publish, stage_copy

MANIFEST = ("manifest.json", "{}\n")


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    root = tmp_path / "staged"
    (root / "bin").mkdir(parents=True)
    (root / "bin/postgres").write_text("program")
    (root / "bin/postgres").chmod(0o4755)
    (root / "lib").mkdir()
    (root / "lib/libpq.so").symlink_to("libpq.so.5")
    return root


def test_everything_is_copied_and_nothing_runs_with_anothers_privileges(staged: Path, tmp_path: Path) -> None:
    stage_copy(tmp_path / "built", staged, list)
    publish(tmp_path / "built", MANIFEST)
    assert (tmp_path / "built/bin/postgres").read_text() == "program"
    assert stat.S_IMODE((tmp_path / "built/bin/postgres").stat().st_mode) == 0o755
    assert (tmp_path / "built/lib/libpq.so").readlink() == Path("libpq.so.5")
    assert (tmp_path / "built/manifest.json").read_text() == "{}\n"
    assert stat.S_IMODE((tmp_path / "built").stat().st_mode) == 0o755


def test_until_it_is_published_it_is_not_there(staged: Path, tmp_path: Path) -> None:
    assert stage_copy(tmp_path / "built", staged, list) == hidden(tmp_path / "built")
    assert (hidden(tmp_path / "built") / "bin/postgres").is_file()
    assert not (tmp_path / "built").exists()


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InstallationError, match="could not copy the finished installation"):
        stage_copy(tmp_path / "built", tmp_path / "nowhere", list)


def test_what_a_killed_pgdyno_has_left_is_replaced(staged: Path, tmp_path: Path) -> None:
    (tmp_path / ".built.partial").mkdir()
    (tmp_path / ".built.partial/old").write_text("")
    stage_copy(tmp_path / "built", staged, list)
    publish(tmp_path / "built", MANIFEST)
    assert sorted(path.name for path in (tmp_path / "built").iterdir()) == ["bin", "lib", "manifest.json"]


def test_a_link_in_place_of_the_manifest_is_replaced_and_not_followed(staged: Path, tmp_path: Path) -> None:
    (staged / "manifest.json").symlink_to("bin/postgres")
    stage_copy(tmp_path / "built", staged, list)
    publish(tmp_path / "built", MANIFEST)
    assert (tmp_path / "built/bin/postgres").read_text() == "program"
    assert not (tmp_path / "built/manifest.json").is_symlink()
    assert (tmp_path / "built/manifest.json").read_text() == "{}\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../lib/../../outside", "../.."])
def test_links_that_lead_out_of_an_installation_are_refused(
    staged: Path, tmp_path: Path, target: str
) -> None:
    (staged / "bin/psql").symlink_to(target)
    with pytest.raises(InstallationError) as caught:
        stage_copy(tmp_path / "built", staged, list)
    assert caught.value.message == "the build contains a link that leads outside"
    assert caught.value.detail == f"bin/psql leads to {target}"


def test_a_directory_in_place_of_the_manifest_is_refused(staged: Path, tmp_path: Path) -> None:
    (staged / "manifest.json").mkdir()
    stage_copy(tmp_path / "built", staged, list)
    with pytest.raises(InstallationError, match=r'contains a directory "manifest\.json"'):
        publish(tmp_path / "built", MANIFEST)


def test_a_link_to_itself_is_copied(staged: Path, tmp_path: Path) -> None:
    (staged / "bin/loop").symlink_to("loop")
    assert (stage_copy(tmp_path / "built", staged, list) / "bin/loop").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="others than root make no devices in any case")
def test_root_makes_no_devices_that_a_process_of_the_account_sends(staged: Path, tmp_path: Path) -> None:
    archive = tmp_path / "sent.tar"
    with tarfile.open(archive, "w") as file:
        device = tarfile.TarInfo("./memory")
        device.type, device.devmajor, device.devminor, device.mode = tarfile.CHRTYPE, 1, 1, 0o666
        file.addfile(device)
    with pytest.raises(InstallationError, match="could not copy the finished installation"):
        stage_copy(tmp_path / "built", staged, lambda _: ["cat", str(archive)])
    assert list(hidden(tmp_path / "built").iterdir()) == []


def test_a_writer_that_ends_early_does_not_leave_the_reader_waiting(tmp_path: Path) -> None:
    staged = tmp_path / "staged"
    staged.mkdir()
    (staged / "large").write_bytes(b"\0" * (1 << 22))  # more than a pipe holds
    with pytest.raises(InstallationError, match="could not copy the finished installation"):
        stage_copy(tmp_path / "built", staged, lambda _: ["sh", "-c", "echo no archive; cat /dev/zero"])
