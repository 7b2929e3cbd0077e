"""Pools of huge pages: what the kernel gives, and that the pages stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.programs.apply.writers.test_kernel_file import BOOT, BYTES, POOL, RATIO, SWAPPINESS, put
from tests.unit.apply.machines import make_machine

from pgdyno.apply.writers.huge_page_pool import HugePagePoolWriter
from pgdyno.apply.writers.kernel_file import KernelFileWriter
from pgdyno.base.errors import SettingError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        SWAPPINESS: "60",
        BYTES: "0",
        RATIO: "20",
        BOOT: "first",
        "/proc/sys/vm/compact_memory": "",
        f"{POOL}/nr_hugepages": "100",
        f"{POOL}/surplus_hugepages": "0",
        "/proc/meminfo": "MemTotal: 90000 kB\nMemAvailable: 20000 kB\nHugepagesize: 2048 kB",
    }
    for path, value in files.items():
        put(tmp_path, path, value)
    return tmp_path


@pytest.mark.parametrize(
    ("pages", "attempts"),
    [
        (125, 4),  # of which three find no more
        (130, 1),  # half a MB more than there is memory: neither evicted nor compacted
    ],
)
@pytest.mark.parametrize("pool", [f"{POOL}/nr_hugepages", "/proc/sys/vm/nr_hugepages"])
def test_a_pool_that_comes_out_smaller_is_an_error_that_says_how_small(
    root: Path, monkeypatch: pytest.MonkeyPatch, pool: str, pages: int, attempts: int
) -> None:
    asked: list[str] = []

    def scarce(_: KernelFileWriter, key: str, value: str) -> None:
        asked.append(key)
        put(root, key, "120" if key == pool else value)

    monkeypatch.setattr(KernelFileWriter, "write", scarce)
    with pytest.raises(SettingError, match=f"only 120 of {pages} huge pages could be reserved"):
        HugePagePoolWriter(root).write(pool, str(pages))
    assert (asked.count(pool), asked.count("/proc/sys/vm/compact_memory")) == (attempts, attempts - 1)


def test_room_for_a_pool_is_made_until_there_is_enough(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, found = f"{POOL}/nr_hugepages", ["101", "103", "105"]

    def scattered(_: KernelFileWriter, key: str, value: str) -> None:
        put(root, key, found.pop(0) if key == pool else value)

    monkeypatch.setattr(KernelFileWriter, "write", scattered)
    HugePagePoolWriter(root).write(pool, "105")
    assert not found


def test_pages_that_are_given_back_later_do_not_count(root: Path) -> None:
    put(root, f"{POOL}/surplus_hugepages", "40")
    assert HugePagePoolWriter(root).read(f"{POOL}/nr_hugepages").value == "60"


def test_a_kernel_that_cannot_compact_says_how_many_pages_there_are_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "proc/sys/vm/compact_memory").unlink()
    monkeypatch.setattr(KernelFileWriter, "write", lambda *_: None)
    with pytest.raises(SettingError, match="only 100 of 105 huge pages could be reserved"):
        HugePagePoolWriter(root).write(f"{POOL}/nr_hugepages", "105")


def test_the_sysctl_counts_only_pages_that_stay(root: Path) -> None:
    put(root, "/proc/sys/vm/nr_hugepages", "60")
    assert HugePagePoolWriter(root).read("/proc/sys/vm/nr_hugepages").value == "60"


@pytest.mark.parametrize(("now", "is_on_the_way"), [("0", True), ("9", True), ("10", True), ("11", False)])
def test_sizes_between_two_are_on_the_way(now: str, *, is_on_the_way: bool) -> None:
    writer = HugePagePoolWriter()
    assert writer.is_on_the_way(now, "0", "10") is is_on_the_way
    assert writer.is_on_the_way(now, "10", "0") is is_on_the_way


def test_pages_that_somebody_gives_back_while_they_are_counted_do_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total, lent = f"{POOL}/nr_hugepages", f"{POOL}/surplus_hugepages"
    root = make_machine(tmp_path, {total: "75", lent: "75"})
    servers = ["one that ends between the two readings"]
    value = KernelFileWriter.value

    def read(writer: KernelFileWriter, key: str) -> str:
        if key == lent and servers:
            servers.pop()
            make_machine(root, {total: "0", lent: "0"})
        return value(writer, key)

    monkeypatch.setattr(KernelFileWriter, "value", read)
    assert HugePagePoolWriter(root).value_if_any(total) == "0"
