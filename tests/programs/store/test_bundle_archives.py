"""Archives of bundles: ones that are damaged, hide members or fill memory are not unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fix_bundle import DOCUMENT, FILES, checked, repacked
from tests.golden.synthetic import experiment

from pgdyno.base.errors import StorageError
from pgdyno.store.bundle import check_bundle, pack_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    path.write_bytes(pack_bundle("pgdyno-x", FILES))
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_packed_by_deflate(bundle: Path, method: int) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/more.txt", b"more", compress_type=method)
    assert check_bundle(bundle).problems[0] == (
        f"more.txt cannot be unpacked: it is compressed by method {method}, not by deflate"
    )


def test_members_that_would_unpack_elsewhere_are_named(bundle: Path) -> None:
    found = repacked(bundle, {"../../etc/cron.d/x": b""})
    assert '"pgdyno-x/../../etc/cron.d/x" points outside of the bundle' in found.problems


def test_directories_are_no_files_and_hide_none(bundle: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/", b"")
    assert check_bundle(bundle).problems == ()
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/run.sh/", b"rm -r /")
        archive.writestr("pgdyno-x/../../etc/", b"")
        archive.writestr("other/", b"")
    assert check_bundle(bundle).problems == (
        "its files are in 2 directories: other, pgdyno-x",
        '"pgdyno-x/run.sh/" is a directory, but has 7 bytes',
        '"pgdyno-x/../../etc/" points outside of the bundle',
    )


def test_second_directory_is_named(bundle: Path) -> None:
    found = repacked(bundle, {"x": b""}, top="other")
    assert found.problems[0] == "its files are in 2 directories: other, pgdyno-x"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_member_that_is_there_twice_is_named(bundle: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/report.html", b"<p>other</p>")
    assert '"pgdyno-x/report.html" occurs twice' in check_bundle(bundle).problems


def test_archive_made_to_fill_memory_is_not_unpacked(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.store.documents.TOTAL_BYTES", 1000)
    total = len(DOCUMENT) + 13 + 8 + 3 * 66 + len("experiment.jsonreport.htmlREADME.txt") + 3
    found = check_bundle(bundle)
    assert found.files == ()
    assert found.problems == (f"it unpacks to {total} bytes, more than the 1000 that are read",)


def test_file_that_is_no_bundle_says_who_writes_bundles(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        checked(tmp_path / "b.zip", b"not a zip file")
    assert str(caught.value) == (
        f'"{tmp_path}/b.zip" is not a bundle\n'
        "DETAIL:  it is not a readable zip file: File is not a zip file\n"
        "HINT:  bundles are written by: pgdyno bundle export EXPERIMENT"
    )


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_bundle_that_was_cut_off_is_named_as_such(bundle: Path, tmp_path: Path, share: float) -> None:
    whole = bundle.read_bytes()
    with pytest.raises(StorageError) as caught:
        checked(tmp_path / "b.zip", whole[: max(4, int(len(whole) * share))])
    assert str(caught.value) == (
        f'"{tmp_path}/b.zip" is an incomplete bundle\n'
        "DETAIL:  it begins like a bundle, but its end is missing or damaged: File is not a zip file\n"
        "HINT:  get it again: it was truncated, or its end was changed"
    )


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"zeros": bytes(4 << 20)}, '"x/zeros" unpacks to more than 100 times its size'),
        ({f"{n}": b"" for n in range(63)}, "it has 65 files, more than the 64 that are read"),
        ({"experiment.json": bytes(33 << 20)}, '"x/experiment.json" unpacks to more than 100 times its size'),
    ],
)
def test_what_was_made_to_fill_memory_is_not_unpacked(
    tmp_path: Path, files: Mapping[str, bytes], problem: str
) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": DOCUMENT, **files}))
    assert found.files == ()
    assert found.problems == (problem,)


PACKED = pack_bundle("x", FILES)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, len(PACKED) - 1))
def test_no_beginning_of_a_bundle_is_taken_for_one(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    with pytest.raises(StorageError):
        checked(path, PACKED[:length])


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_changed_byte_goes_unnoticed_or_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    packed = bytearray(PACKED)
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("bundle") / "b.zip"
    try:
        found = checked(path, bytes(packed))
    except StorageError:
        return
    # Bytes that say nothing about the contents (versions, attributes, times) may differ.
    assert found.problems or found.experiment == experiment()


def test_encrypted_member_before_another_of_its_name_is_a_problem(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x/experiment.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x/experiment.json", '{"a": 1}')
    contents = bytearray((tmp_path / "x.zip").read_bytes())
    contents[contents.index(b"PK\x01\x02") + 8] |= 1  # the first one's flag of encryption
    found = checked(tmp_path / "x.zip", bytes(contents))
    assert "experiment.json cannot be unpacked: it is encrypted" in found.problems
    assert "experiment.json is missing or too large" in found.problems


def test_member_without_a_name_is_a_problem(tmp_path: Path) -> None:
    contents = pack_bundle("x", {}).replace(b"x/SHA256SUMS", b"\0" * 12)
    assert "SHA256SUMS is missing" in checked(tmp_path / "x.zip", contents).problems
