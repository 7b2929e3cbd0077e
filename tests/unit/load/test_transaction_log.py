"""Reading logs while they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.process import last_words, output_end
from pgdyno.load.transaction_log import TransactionLog


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, kind: str) -> None:
    """Logs lie in a directory of the generators' user, and root reads them."""
    (tmp_path / "secret").write_text("root's own\n")
    place = tmp_path / "log.1"
    match kind:
        case "link":
            place.symlink_to(tmp_path / "secret")
        case "fifo":
            os.mkfifo(place)
        case _:
            place.mkdir()
    with pytest.raises(GeneratorFailedError) as caught:
        TransactionLog(tmp_path / "log").read_new()
    assert caught.value.message == "a generator's log is not a regular file"
    assert caught.value.detail == str(place)


def test_only_whole_lines_are_read_and_each_once(tmp_path: Path) -> None:
    file = tmp_path / "log.1"
    log = TransactionLog(tmp_path / "log")
    file.write_bytes(b"one\ntwo\nthr")
    assert log.read_new() == b"one\ntwo\n"
    assert log.read_new() == b""
    with file.open("ab") as more:
        more.write(b"ee\n")
    assert log.read_new() == b"three\n"


def test_a_log_that_was_made_to_fill_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TransactionLog(tmp_path / "log")
    (tmp_path / "log.1").write_bytes(b"one\n")
    assert log.read_new() == b"one\n"
    os.truncate(tmp_path / "log.1", 1 << 40)  # takes no space
    with pytest.raises(GeneratorFailedError) as caught:
        log.read_new()
    assert caught.value.message == "a generator's log is too large"
    monkeypatch.setattr("pgdyno.load.transaction_log.MOST_BYTES", 7)
    (tmp_path / "log.1").write_bytes(b"one\n")
    (tmp_path / "log.2").write_bytes(b"two\n")
    with pytest.raises(GeneratorFailedError):
        TransactionLog(tmp_path / "log").read_new()


def test_of_a_generators_output_the_end_is_read(tmp_path: Path) -> None:
    output = tmp_path / "driver.out"
    output.write_bytes(b"")
    os.truncate(output, 1 << 40)
    with output.open("ab") as file:
        file.write(b"\nlast words\n")
    assert len(output_end(output)) == 64 << 10
    assert last_words(output_end(output)).endswith("\nlast words")


def test_of_an_error_the_beginning_is_shown() -> None:
    values = ", ".join([":i"] * 1000)
    output = (
        f"pgbench (15.18)\npgbench: error: too many arguments: SELECT {values}\npgbench: error: aborted\n"
    )
    shown = last_words(output)
    assert shown.startswith("pgbench: error: too many arguments: SELECT :i, ")
    assert len(shown) == 800


def test_the_files_of_all_threads_are_read_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_bytes(b"a\n")
    (tmp_path / "log.1.7").write_bytes(b"b\n")
    (tmp_path / "logs.1").write_bytes(b"c\n")
    assert TransactionLog(tmp_path / "log").read_new() == b"a\nb\n"


def test_a_generator_that_has_not_logged_yet_has_nothing(tmp_path: Path) -> None:
    assert TransactionLog(tmp_path / "log").read_new() == b""


def test_a_prefix_that_begins_like_another_and_signs_of_patterns_are_taken_literally(tmp_path: Path) -> None:
    (tmp_path / "a[1].0.1.77").write_bytes(b"1\n")
    (tmp_path / "a[1].0.10.78").write_bytes(b"2\n")
    assert TransactionLog(tmp_path / "a[1].0.1").read_new() == b"1\n"
