"""Presets of the Insert Benchmark, against the published sizes and configuration files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Sizing, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.durability import unsafe_settings
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled.insert_benchmark.sizes import PRESETS, size_of
from pgdyno.studies.bundled.insert_benchmark.study import settings, study, workloads

PUBLISHED = ["cached-small", "io-bound-small", "ax162-s"]
GB = 1 << 30


def text(rows: tuple[int, int, int]) -> str:
    """Return rows as they are asked for."""
    return "/".join(map(str, rows))


def test_quick_is_the_preset_unless_another_one_is_named() -> None:
    assert size_of(Sizing()) == PRESETS["quick"]


def test_an_unknown_preset_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        workloads(Sizing({"preset": ("huge",)}))
    assert caught.value.message == 'the Insert Benchmark has no preset "huge"'
    assert caught.value.hint == "known: quick, io-bound-quick, cached-small, io-bound-small, ax162-s"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_second_number_of_rows_is_split_four_to_one_as_in_the_original_script(preset: str) -> None:
    _, i1, i2 = PRESETS[preset].rows
    assert i1 == 4 * i2


@pytest.mark.parametrize(
    ("preset", "clients", "millions", "memory_bytes"),
    [  # smalldatum.blogspot.com, March 2026: the small server's two sizes, and 20 clients IO-bound
        ("cached-small", 1, (30, 40, 10), None),
        ("io-bound-small", 1, (800, 4, 1), 32 * GB),
        ("ax162-s", 20, (200, 4, 1), 128 * GB),
    ],
)
def test_published_presets_have_the_published_size(
    preset: str, clients: int, millions: tuple[int, int, int], memory_bytes: int | None
) -> None:
    size = PRESETS[preset]
    assert (size.clients, size.step_s) == (clients, 1800)
    assert tuple(rows // 1_000_000 for rows in size.rows) == millions
    assert size.server_memory_bytes == memory_bytes


def test_the_wait_after_the_writing_steps_grows_with_the_tables_as_published_and_is_short_in_quick() -> None:
    # The published example: 10 million rows for each of 20 clients make 260 s; 1200 s are the most.
    assert replace(PRESETS["ax162-s"], rows=(10_000_000, 4, 1)).settle_s == 260
    assert PRESETS["ax162-s"].settle_s == 1200
    assert PRESETS["quick"].settle_s == 3


@pytest.mark.parametrize("preset", PUBLISHED)
def test_published_presets_have_the_published_configuration_which_is_not_durable(preset: str) -> None:
    found = settings(Sizing({"preset": (preset,)}))
    assert unsafe_settings(found) == ("synchronous_commit=off",)
    assert (found["checkpoint_timeout"], found["wal_compression"], found["jit"]) == ("1800s", "off", "off")
    # conf.diff.cx10b_c8r32 and conf.diff.cx10a_c32r128
    expected = ("96GB", "96GB", "48GB", "50ms") if preset == "ax162-s" else ("23GB", "40GB", "20GB", "100ms")
    names = ("shared_buffers", "max_wal_size", "min_wal_size", "bgwriter_delay")
    assert tuple(found[name] for name in names) == expected


@pytest.mark.parametrize("preset", sorted(PRESETS.keys() - set(PUBLISHED)))
def test_our_own_presets_are_durable(preset: str) -> None:
    assert unsafe_settings(settings(Sizing({"preset": (preset,)}))) == ()


@pytest.mark.parametrize(
    ("preset", "least_gb", "most_gb"),
    # By hand: 4 billion rows of 205 bytes are 820 GB; with 20 × (5 M + 2 × 1600/s × 1800 s) rows of 160 bytes
    # and 1.5 × 96 GiB of WAL that makes 1009 GB. 800 million rows: 164 GB, with the rest 231 GB.
    [("ax162-s", 1000, 1020), ("io-bound-small", 225, 235), ("quick", 1, 3)],
)
def test_the_room_on_disk_is_estimated_from_rows_and_wal(
    preset: str, least_gb: float, most_gb: float
) -> None:
    workload = next(iter(workloads(Sizing({"preset": (preset,)})).values()))
    assert workload.disk_bytes is not None
    assert least_gb < workload.disk_bytes / 1e9 < most_gb


def test_every_step_of_an_io_bound_preset_has_the_same_limit_on_memory() -> None:
    assert {w.server_memory_bytes for w in workloads(Sizing({"preset": ("ax162-s",)})).values()} == {128 * GB}
    assert {w.server_memory_bytes for w in workloads(Sizing({"preset": ("quick",)})).values()} == {None}


def test_the_label_says_mode_and_size() -> None:
    size = size_of(
        Sizing({"preset": ("io-bound-small",), "rows": ("200/50/10",), "step-seconds": ("60",)}, clients=4)
    )
    assert size.label == (
        "Insert Benchmark, corrected mode: clients start together, q steps end by time, their inserts and "
        "deletes arrive as an open loop, latency counts from the intended start; preset io-bound-small, "
        "4 clients, 200/50/10 rows each in l.i0/l.i1/l.i2, q steps of 60 s, 32\xa0GB of memory"
    )
    assert replace(size, is_faithful=True).label.startswith(
        "Insert Benchmark, faithful mode: inserts and deletes of q steps come in bursts once a second"
    )


def test_a_size_asked_for_replaces_the_presets_and_keeps_its_settings() -> None:
    size = size_of(Sizing({"preset": ("ax162-s",), "rows": ("100/50/5",), "step-seconds": ("5",)}, clients=2))
    assert (size.clients, size.rows, size.step_s) == (2, (100, 50, 5), 5)
    assert size.settings == PRESETS["ax162-s"].settings


@pytest.mark.parametrize(
    ("rows", "message", "whole"),
    [
        ((150, 50, 5), "l.i0 inserts 100 rows per statement, and 150", "200/50/5"),
        ((200, 51, 5), "l.i1 inserts 50 rows per statement, and 51", "200/100/5"),
        ((1, 1, 1), "l.i0 inserts 100 rows per statement, and 1", "100/50/5"),
        ((200, 50, 9), "l.i2 inserts 5 rows per statement, and 9", "200/50/10"),
    ],
)
def test_rows_that_are_not_whole_statements_are_refused(
    rows: tuple[int, int, int], message: str, whole: str
) -> None:
    with pytest.raises(UsageError) as caught:
        size_of(Sizing({"rows": (text(rows),)}))
    assert caught.value.message == f"{message} is not a multiple of that"
    assert caught.value.hint == f"the next larger size is --rows {whole}"


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_whole_statements(preset: str) -> None:
    assert size_of(Sizing({"preset": (preset,), "rows": (text(PRESETS[preset].rows),)})) == PRESETS[preset]


@pytest.mark.parametrize(
    ("rows", "clients", "wait_s"),
    [
        ((400_000, 50, 5), 2, 3.0),  # the preset's own
        ((100_000, 50, 5), 2, 3.0),  # smaller
        ((800_000, 50, 5), 2, 6.0),
        ((400_000, 50, 5), 4, 6.0),
        ((30_000_000, 50, 5), 2, 120.0),  # as published: 60 s and one for every million of 60 million rows
        ((400_000_000, 50, 5), 4, 1200.0),
    ],
)
def test_the_short_wait_of_a_small_preset_grows_with_the_rows_asked_for(
    rows: tuple[int, int, int], clients: int, wait_s: float
) -> None:
    assert size_of(Sizing({"rows": (text(rows),)}, clients=clients)).settle_s == pytest.approx(wait_s)


def test_an_io_bound_preset_with_too_few_rows_says_so() -> None:
    # 490,000 rows of 205 bytes are 95.8 × 2^20 bytes.
    asked = Sizing({"preset": ("io-bound-quick",), "rows": ("490000/50/5",)}, clients=1)
    (note,) = notes(asked)
    assert note == (
        "not IO-bound at this size: about 95.8\xa0MB of data, and 96\xa0MB of memory for each server; "
        "use at least twice as much data as memory"
    )
    assert notes(replace(asked, given={**asked.given, "rows": ("1000000/50/5",)})) == ()  # 205 MB
    assert notes(Sizing()) == ()


def notes(sizing: Sizing) -> tuple[str, ...]:
    return study(StudyContext(Variant("a"), (), Design(), sizing=sizing)).notes
