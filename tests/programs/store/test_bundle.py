"""Bundles: equal contents give equal bytes, and every kind of damage is named."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden.synthetic import experiment

from pgdyno.model.errors import StorageError
from pgdyno.store.bundle import Verification, check_bundle, pack_bundle, verified_lines
from pgdyno.store.documents import dump_experiment

DOCUMENT = json.dumps(dump_experiment(experiment())).encode()
FILES = {"experiment.json": DOCUMENT, "report.html": b"<p>report</p>", "README.txt": b"read me\n"}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    path.write_bytes(pack_bundle("pgdyno-x", FILES))
    return path


def checked(path: Path, contents: bytes) -> Verification:
    path.write_bytes(contents)
    return check_bundle(path)


def repacked(path: Path, changes: Mapping[str, bytes | None], top: str = "pgdyno-x") -> Verification:
    """Check a bundle whose members were replaced, added or (None) removed, its list of checksums kept."""
    with zipfile.ZipFile(path) as archive:
        members: dict[str, bytes | None] = {name: archive.read(name) for name in archive.namelist()}
    members.update({f"{top}/{name}": content for name, content in changes.items()})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return check_bundle(path)


def test_intact_bundle_has_no_problems_and_gives_the_experiment(bundle: Path) -> None:
    found = check_bundle(bundle)
    assert found.problems == ()
    assert found.experiment == experiment()
    assert [file.name for file in found.files] == [
        *("README.txt", "experiment.json", "report.html", "SHA256SUMS")
    ]


def test_equal_contents_give_equal_bytes_in_any_order() -> None:
    assert pack_bundle("x", FILES) == pack_bundle("x", dict(reversed(FILES.items())))


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_checksums_can_be_checked_without_pgdyno(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"],
        cwd=tmp_path / "pgdyno-x",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "README.txt: OK\nexperiment.json: OK\nreport.html: OK\n"


def test_changed_file_is_named_with_both_checksums(bundle: Path) -> None:
    found = repacked(bundle, {"report.html": b"<p>better</p>"})
    before = hashlib.sha256(b"<p>report</p>").hexdigest()
    after = hashlib.sha256(b"<p>better</p>").hexdigest()
    assert found.problems == (f"report.html was changed: its SHA-256 is {after}, SHA256SUMS has {before}",)


def test_missing_and_added_files_are_named(bundle: Path) -> None:
    found = repacked(bundle, {"report.html": None, "extra.sh": b"rm"})
    assert found.problems == ("report.html is missing", "extra.sh is not listed in SHA256SUMS")


def test_missing_list_of_checksums_is_a_problem(bundle: Path) -> None:
    assert repacked(bundle, {"SHA256SUMS": None}).problems == ("SHA256SUMS is missing",)


def test_line_that_is_no_checksum_is_named(bundle: Path) -> None:
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items())
    found = repacked(bundle, {"SHA256SUMS": (sums + "nonsense\n").encode()})
    assert found.problems == ("line 4 of SHA256SUMS is not a checksum and a name",)


def test_list_of_checksums_that_was_made_to_fill_the_terminal_is_not_read(bundle: Path) -> None:
    few = repacked(bundle, {"SHA256SUMS": b"\n" * 100})
    assert few.problems == (
        *(f"line {number} of SHA256SUMS is not a checksum and a name" for number in range(1, 9)),
        "and 95 more",  # 92 lines, and three files that are not listed
    )
    many = repacked(bundle, {"SHA256SUMS": b"\n" * (16 << 10 | 1)})
    assert many.problems == ("SHA256SUMS cannot be read, or has more than 16384 bytes",)
    signed = repacked(bundle, {"SHA256SUMS.sig": b"\n" * (16 << 10 | 1)})
    assert signed.problems[-1] == "SHA256SUMS.sig cannot be checked"


def test_broken_json_is_named_by_line_and_column(tmp_path: Path) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": b'{\n "a": }'}))
    assert found.experiment is None
    assert found.problems == ("experiment.json is not JSON: line 2, column 7: Expecting value",)


def test_wrong_members_are_named_by_their_path(tmp_path: Path) -> None:
    document = {**dump_experiment(experiment()), "blocks": 3}
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    assert found.problems == (
        "experiment.json: the document is not an experiment",
        "experiment.json: blocks: input should be a valid tuple",
    )


def test_bundle_of_a_newer_pgdyno_is_named_as_such(tmp_path: Path) -> None:
    document = {**dump_experiment(experiment()), "schema_version": 2}
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    assert found.problems == (
        "experiment.json: the document has schema version 2",
        "experiment.json: this pgdyno reads versions up to 1",
    )
    assert found.advice == "upgrade pgdyno: pip install --upgrade pgdyno"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": "\\ud800"}', "'utf-8' codec can't encode character '\\ud800'"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number has 5000 digits"),
        (b"[" * 200_000, "maximum recursion depth exceeded"),
    ],
)
def test_json_that_no_program_should_be_given_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (problem,) = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": content})).problems
    assert problem.startswith(f"experiment.json cannot be read: {why}")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_packed_by_deflate(bundle: Path, method: int) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/more.txt", b"more", compress_type=method)
    assert check_bundle(bundle).problems[0] == (
        f"more.txt cannot be unpacked: it is packed by method {method}, not by deflate"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"[]", "experiment.json is not a JSON object"), (b"\xff\xfe", "experiment.json is not JSON: line 1")],
)
def test_other_contents_are_not_taken_for_an_experiment(tmp_path: Path, content: bytes, problem: str) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": content}))
    assert found.problems[0].startswith(problem)


def test_bundle_without_an_experiment_is_not_intact(tmp_path: Path) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"report.html": b""}))
    assert found.problems == ("experiment.json is missing or too large",)


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
        "its files lie in 2 directories: other, pgdyno-x",
        '"pgdyno-x/run.sh/" is a directory, and has 7 bytes',
        '"pgdyno-x/../../etc/" points outside of the bundle',
    )


def test_second_directory_is_named(bundle: Path) -> None:
    found = repacked(bundle, {"x": b""}, top="other")
    assert found.problems[0] == "its files lie in 2 directories: other, pgdyno-x"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_member_that_is_there_twice_is_named(bundle: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("pgdyno-x/report.html", b"<p>other</p>")
    assert '"pgdyno-x/report.html" is there twice' in check_bundle(bundle).problems


def test_archive_made_to_fill_memory_is_not_unpacked(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.store.bundle_limits.TOTAL_BYTES", 1000)
    total = len(DOCUMENT) + 13 + 8 + 3 * 66 + len("experiment.jsonreport.htmlREADME.txt") + 3
    found = check_bundle(bundle)
    assert found.files == ()
    assert found.problems == (f"it unpacks to {total} bytes, more than the 1000 that are read",)


def test_file_that_is_no_bundle_says_who_writes_bundles(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        checked(tmp_path / "b.zip", b"not a zip file")
    assert str(caught.value) == (
        f'"{tmp_path}/b.zip" is not a bundle\n'
        "DETAIL:  it is no readable zip file: File is not a zip file\n"
        "HINT:  bundles are written by: pgdyno bundle export EXPERIMENT"
    )


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_bundle_that_was_cut_off_is_named_as_such(bundle: Path, tmp_path: Path, share: float) -> None:
    whole = bundle.read_bytes()
    with pytest.raises(StorageError) as caught:
        checked(tmp_path / "b.zip", whole[: max(4, int(len(whole) * share))])
    assert str(caught.value) == (
        f'"{tmp_path}/b.zip" is not a whole bundle\n'
        "DETAIL:  it begins as one and does not end as one: File is not a zip file\n"
        "HINT:  get it again: it was cut off, or its end was changed"
    )


def test_a_file_that_was_exchanged_after_it_was_checked_is_not_read(bundle: Path) -> None:
    found = check_bundle(bundle)
    assert read(bundle, found, "README.txt") == ["read me\n"]
    assert verified_lines(bundle, found, "slices.csv") is None
    bundle.write_bytes(pack_bundle("pgdyno-x", {**FILES, "README.txt": b"other\n"}))
    with pytest.raises(StorageError) as caught:
        read(bundle, found, "README.txt")
    assert (
        str(caught.value) == f'"{bundle}" was changed while it was read\nDETAIL:  README.txt is another one'
    )
    bundle.write_bytes(pack_bundle("pgdyno-x", {"experiment.json": DOCUMENT}))
    with pytest.raises(StorageError, match="was changed while it was read"):
        read(bundle, found, "README.txt")


def read(path: Path, found: Verification, key: str) -> list[str]:
    lines = verified_lines(path, found, key)
    assert lines is not None
    return list(lines)


@pytest.mark.parametrize(
    ("content", "line"), [(b"short\n" + b"x" * (256 << 10) + b"\n", 2), (b"a\n" * 1_000_001, 1_000_001)]
)
def test_series_of_endless_lines_are_not_read(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "b.zip"
    found = stored(path, {"experiment.json": DOCUMENT, "slices.csv": content})
    with pytest.raises(StorageError) as caught:
        read(path, found, "slices.csv")
    assert caught.value.message == f"line {line} of slices.csv is not read"
    assert caught.value.detail == "a file may have 1000000 lines, each of up to 262144 bytes"


def stored(path: Path, files: Mapping[str, bytes]) -> Verification:
    """Check a bundle that is not compressed."""
    with zipfile.ZipFile(path, "w") as archive:
        sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
        for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(f"x/{name}", content)
    return check_bundle(path)


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


def test_a_document_has_a_limit_however_it_is_packed(tmp_path: Path) -> None:
    found = stored(tmp_path / "b.zip", {"experiment.json": DOCUMENT + b" " * (33 << 20)})
    assert found.problems == ("experiment.json is missing or too large",)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        check_bundle(tmp_path / "b.zip")
    assert str(caught.value) == f'could not open "{tmp_path}/b.zip"\nDETAIL:  No such file or directory'


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
