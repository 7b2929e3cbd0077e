"""Logs of a driver on another host: kept beside each other here, whatever that host sends."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.transaction_log import TransactionLog, keep_sent_part


def packed(text: bytes) -> str:
    return encoded(zlib.compress(text))


def encoded(part: bytes) -> str:
    return base64.b64encode(part).decode()


def keep(directory: Path, event: Mapping[str, object]) -> int:
    return keep_sent_part("client1", [directory / "first", directory / "second"], event)


def test_parts_of_all_threads_are_put_together(tmp_path: Path) -> None:
    for file, part in (("1.0", b"a"), ("1.0", b"b\n"), ("1.12", b"c\n"), ("0.0", b"d\n")):
        keep(tmp_path, {"event": "log", "file": file, "part": packed(part)})
    assert keep(tmp_path, {"event": "log", "file": "1.3", "part": packed(b"cut")}) == 3
    assert TransactionLog(tmp_path / "second").read_new() == b"ab\nc\n"
    assert TransactionLog(tmp_path / "first").read_new() == b"d\n"


@pytest.mark.parametrize(
    "event",
    [
        {"file": "../0.0", "part": packed(b"")},
        {"file": "0.0/../../etc/x", "part": packed(b"")},
        {"file": "2.0", "part": packed(b"")},
        {"file": "0.0\n", "part": packed(b"")},
        {"file": 7, "part": packed(b"")},
        {"part": packed(b"")},
        {"file": "0.0"},
        {"file": "0.0", "part": "?"},
        {"file": "0.0", "part": encoded(b"plain")},
        {"file": "0.0", "part": packed(bytes((1 << 20) + 1))},  # more than our program sends at once
        {"file": "0.0", "part": packed(bytes(100 << 20))},
        {"file": "0.0", "part": encoded(zlib.compress(bytes(1000))[:-1])},  # cut off
        {"file": "0.0", "part": encoded(b"")},
        {"file": "0.0", "part": encoded(zlib.compress(b"x") + b"more")},
    ],
)
def test_anything_else_is_refused(tmp_path: Path, event: Mapping[str, object]) -> None:
    with pytest.raises(GeneratorFailedError, match="client1 sent an invalid part of its load's log"):
        keep(tmp_path, event)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "first.0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        keep(tmp_path, {"event": "log", "file": "0.0", "part": packed(b"x")})
    assert not (tmp_path / "elsewhere").exists()
