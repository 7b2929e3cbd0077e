"""Sampling pages of a data directory, and what LZ4 makes of them."""

from __future__ import annotations

import os
import struct
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.host.files.walk import acting_as
from pgdyno.host.probing import compression_probe as page_compression
from pgdyno.host.probing.compression_probe import lz4, probe_page_compression, sample_images

BLOCK = 8192


def has_lz4() -> bool:
    try:
        lz4(BLOCK)
    except OSError:
        return False
    return True


needs_lz4 = pytest.mark.skipif(not has_lz4(), reason="needs liblz4.so.1")


def page(content: bytes, hole_bytes: int = 0) -> bytes:
    """Return a page as bufpage.h has it: a header, content, a hole, more content."""
    lower = 24 + 4
    header = bytes(12) + struct.pack("=HH", lower, lower + hole_bytes) + bytes(8)
    rest = BLOCK - 24 - 4 - hole_bytes
    return header + b"\x01\x02\x03\x04" + b"\xff" * hole_bytes + (content * BLOCK)[:rest]


def data_directory(tmp_path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "data" / "pg_wal").mkdir(parents=True)
    return tmp_path / "data"


def test_pages_come_from_all_files_of_users_relations_and_their_segments(tmp_path: Path) -> None:
    files = {
        "base/5/16384": page(b"a") * 6,
        "base/5/16384.1": page(b"b") * 2,
        "base/5/16390": page(b"c") * 4,
        "base/5/1259": page(b"x") * 100,  # pg_class
        "base/5/16384_fsm": page(b"x") * 100,
        "base/5/t3_16400": page(b"x") * 100,  # of a temporary table
        "base/pgsql_tmp/16384": page(b"x") * 100,
    }
    images = sample_images(data_directory(tmp_path, files), BLOCK, count=6)
    assert [image[-1:] for image in images] == [b"a", b"a", b"a", b"b", b"c", b"c"]


def test_holes_and_new_pages_are_left_out(tmp_path: Path) -> None:
    files = {"base/5/16384": page(b"a", hole_bytes=5000) + bytes(BLOCK) + page(b"b") + b"cut off"}
    images = sample_images(data_directory(tmp_path, files), BLOCK)
    assert [len(image) for image in images] == [BLOCK - 5000, BLOCK]
    assert b"\xff" not in images[0]


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    directory = data_directory(tmp_path, {"base/5/16384": page(b"a")})
    os.mkfifo(directory / "base/5/16385")
    (directory / "base/5/16386").symlink_to(directory / "base/5/16384")
    assert len(sample_images(directory, BLOCK)) == 1


@needs_lz4
def test_text_becomes_smaller_and_random_bytes_stay(tmp_path: Path) -> None:
    directory = data_directory(tmp_path, {"base/5/16384": page(b"abcdefgh") * 4})
    found = probe_page_compression(directory, tmp_path, BLOCK, nullcontext()).value
    assert not isinstance(found, Unknown)
    assert (found.pages, found.image_bytes) == (4, BLOCK)
    assert found.compressed_bytes < 200
    assert found.compression_us > 0
    assert found.saved_us == pytest.approx((BLOCK - found.compressed_bytes) * found.write_ns / 1000)
    noise = b"".join(page(b"") + os.urandom(BLOCK - 28) for _ in range(4))
    (directory / "base/5/16384").write_bytes(noise)
    found = probe_page_compression(directory, tmp_path, BLOCK, nullcontext()).value
    assert not isinstance(found, Unknown)
    assert found.saved_bytes < 50


@needs_lz4
def test_without_pages_it_is_unknown(tmp_path: Path) -> None:
    directory = data_directory(tmp_path, {"base/5/1259": page(b"x")})
    found = probe_page_compression(directory, tmp_path, BLOCK, nullcontext())
    assert found.value == Unknown("no user tables yet")


@needs_lz4
def test_a_directory_that_cannot_be_read_is_a_reason(tmp_path: Path) -> None:
    found = probe_page_compression(tmp_path / "none", tmp_path, BLOCK, nullcontext())
    assert found.value == Unknown(f"no such file or directory ({tmp_path}/none/base)")


def test_a_machine_without_the_library_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_compression, "_LIBRARY", "libnone.so.1")
    found = probe_page_compression(tmp_path, tmp_path, BLOCK, nullcontext())
    assert isinstance(found.value, Unknown)
    assert found.value.reason.startswith("libnone.so.1: cannot open shared object file")


@pytest.mark.root
def test_a_link_in_the_data_leads_root_no_further_than_their_owner() -> None:
    """The owner lays a link to a directory of root's where a database was."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        secret, data = top / "secret" / "5", top / "data"
        secret.mkdir(parents=True)
        (secret / "16384").write_bytes(os.urandom(BLOCK))
        secret.parent.chmod(0o700)
        for directory in (data, data / "base", data / "pg_wal"):
            directory.mkdir()
            os.chown(directory, nobody, nobody)
        (data / "base" / "5").symlink_to(secret)
        with_rights_of_root = probe_page_compression(data, top, BLOCK, nullcontext()).value
        found = probe_page_compression(data, top, BLOCK, acting_as(nobody, nobody)).value
    assert not isinstance(with_rights_of_root, Unknown)
    assert isinstance(found, Unknown)
    assert found.reason.startswith("permission denied")
