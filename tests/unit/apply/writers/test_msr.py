"""Registers of processors, on plain files with holes that stand for their devices."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.runs.manual_commands import making_statement, restoring_statements
from pgdyno.apply.writers.msr import MsrWriter
from pgdyno.base.errors import PrivilegeError, SettingError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt, Target
from pgdyno.model.plans.plan import Change, Effect, kind_of

BOOT = "/proc/sys/kernel/random/boot_id"
INTEL, AMD = "/dev/cpu/3/msr:0x1a4", "/dev/cpu/4/msr:0xc0000108"
ALL_ON, TWO_OFF = bytes(8), b"\x03" + bytes(7)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    boot = tmp_path / BOOT.lstrip("/")
    boot.parent.mkdir(parents=True)
    boot.write_text("first\n")
    put(tmp_path, 3, 0x1A4, ALL_ON)
    put(tmp_path, 4, 0xC0000108, b"\xc0\x03" + bytes(6))  # 0x3c0, as family 1Ah starts
    return tmp_path


def put(root: Path, cpu: int, offset: int, content: bytes) -> None:
    device = root / f"dev/cpu/{cpu}/msr"
    device.parent.mkdir(parents=True, exist_ok=True)
    device.touch()
    with device.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def shown(root: Path, cpu: int, offset: int, count: int = 8) -> bytes:
    with (root / f"dev/cpu/{cpu}/msr").open("rb") as file:
        file.seek(offset)
        return file.read(count)


def test_what_was_found_comes_back(root: Path) -> None:
    writer = MsrWriter(root)
    found = writer.read(INTEL)
    writer.check(INTEL)
    writer.write(INTEL, "0x3")
    assert (writer.verify(INTEL), shown(root, 3, 0x1A4)) == ("0x3", TWO_OFF)
    writer.restore(INTEL, found)
    writer.restore(INTEL, found)
    assert shown(root, 3, 0x1A4) == ALL_ON
    assert found == Found("0x0", {"setting": "0x0", "boot_id": "first"})


def test_registers_beside_it_stay_as_they_are(root: Path) -> None:
    put(root, 3, 0x1A4 - 8, bytes(range(1, 9)))
    put(root, 3, 0x1A4 + 8, bytes(range(11, 19)))
    MsrWriter(root).write(INTEL, "0xf")
    assert shown(root, 3, 0x1A4 - 8, 24) == bytes(range(1, 9)) + b"\x0f" + bytes(7) + bytes(range(11, 19))


def test_bits_that_are_not_a_prefetchers_are_kept(root: Path) -> None:
    writer = MsrWriter(root)
    writer.write(AMD, "0x3ef")  # bits 0 to 3 and 5, the others as found
    assert writer.verify(AMD) == "0x3ef"
    with pytest.raises(SettingError) as caught:
        writer.write(AMD, "0x2f")
    assert str(caught.value) == (
        "0x2f would change other bits of /dev/cpu/4/msr:0xc0000108 than prefetcher controls\n"
        "DETAIL:  the bits 0x3c0 have another meaning; known are 0x2f"
    )
    assert writer.verify(AMD) == "0x3ef"


@pytest.mark.parametrize("key", ["/dev/cpu/3/msr:0x150", "/dev/cpu/3/msr:0x1b0", "/proc/sys/vm/swappiness"])
def test_other_registers_are_not_touched(root: Path, key: str) -> None:
    put(root, 3, 0x1B0, bytes(8))
    writer = MsrWriter(root)
    for attempt in (partial(writer.check, key), partial(writer.write, key, "0x1")):
        with pytest.raises(SettingError) as caught:
            attempt()
        assert str(caught.value) == (
            f'"{key}" is not a register that pgdyno changes\n'
            "DETAIL:  prefetchers are controlled by 0x1a4, 0xc0000108"
        )


@pytest.mark.parametrize("value", ["fast", "-1", "0x10000000000000000", ""])
def test_what_is_no_number_of_64_bits_is_refused(root: Path, value: str) -> None:
    with pytest.raises(SettingError, match=f'"{value}" is not a value for {INTEL}'):
        MsrWriter(root).write(INTEL, value)
    assert shown(root, 3, 0x1A4) == ALL_ON


def test_values_are_the_same_however_they_are_written(root: Path) -> None:
    writer = MsrWriter(root)
    assert writer.equals(INTEL, "0xF", "0x0f")
    assert writer.meets(INTEL, "f", "0xf")
    assert not writer.equals(INTEL, "0xf", "0x7")
    assert not writer.equals(INTEL, None, "0x0")


def test_a_cpu_whose_registers_are_not_shown_says_what_to_load(root: Path) -> None:
    with pytest.raises(SettingError) as caught:
        MsrWriter(root).check("/dev/cpu/7/msr:0x1a4")
    assert str(caught.value) == (
        "the registers of CPU 7 are not accessible\n"
        "DETAIL:  /dev/cpu/7/msr does not exist\n"
        "HINT:  run modprobe msr as root, on the machine itself rather than in a container"
    )


def test_a_processor_without_the_register_refuses_it_before_anything_is_changed(root: Path) -> None:
    with pytest.raises(SettingError, match="the processor rejects access to /dev/cpu/3/msr:0xc0000108"):
        MsrWriter(root).check("/dev/cpu/3/msr:0xc0000108")


@pytest.mark.parametrize(
    ("error", "kind"),
    [(errno.EIO, SettingError), (errno.EPERM, PrivilegeError), (errno.ENXIO, PrivilegeError)],
)
def test_what_the_kernel_refuses_is_an_error_that_names_the_register(
    root: Path, monkeypatch: pytest.MonkeyPatch, error: int, kind: type[Exception]
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(kind, match=INTEL):
        MsrWriter(root).write(INTEL, "0x1")


def test_after_a_restart_of_the_machine_nothing_is_restored(root: Path) -> None:
    writer = MsrWriter(root)
    found = writer.read(INTEL)
    (root / BOOT.lstrip("/")).write_text("second\n")
    put(root, 3, 0x1A4, TWO_OFF)
    assert writer.is_gone(found)
    writer.restore(INTEL, found)
    assert shown(root, 3, 0x1A4) == TWO_OFF


def test_restoring_gives_back_the_whole_register_also_if_others_have_changed_it(root: Path) -> None:
    writer = MsrWriter(root)
    found = writer.read(AMD)
    put(root, 4, 0xC0000108, b"\xff" + bytes(7))
    writer.restore(AMD, found)
    assert writer.verify(AMD) == "0x3c0"


def test_the_journal_finds_the_writer_by_the_key(root: Path) -> None:
    assert [kind_of(key) for key in (INTEL, AMD, "/proc/sys/vm/swappiness")] == ["msr", "msr", "kernel"]
    assert isinstance(host_writers(root)["msr"], MsrWriter)


def test_the_way_by_hand_is_wrmsr() -> None:
    change = Change("variant", "msr", INTEL, None, "0xf", Effect.IMMEDIATE)
    target = Target("host", "1", None, None, "db1")
    receipt = Receipt("1", "1", "", "", target, change, Found("0x1", {"setting": "0x1"}))
    assert making_statement(change) == "wrmsr -p 3 0x1a4 0xf"
    assert restoring_statements([receipt]) == ("wrmsr -p 3 0x1a4 0x1",)
