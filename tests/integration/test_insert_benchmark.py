"""``pgdyno run insert-benchmark`` on real servers, at a size that takes seconds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("pg18_bin")]

STEPS = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000"]
TINY = ("--embedded", "--clients", "2", "--rows", "2000/500/100", "--step-seconds", "1", "--blocks", "1")


def blocks_of(experiment: str, home: Path) -> list[dict[str, object]]:
    bundle = home / "insert-benchmark.zip"
    assert pgdyno("bundle", "export", experiment, "--output", str(bundle)).returncode == 0
    with zipfile.ZipFile(bundle) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/experiment.json"))
        blocks: list[dict[str, object]] = json.loads(archive.read(name))["blocks"]
    return blocks


def test_all_ten_steps_are_run_on_every_variant_and_named(home: Path) -> None:
    done = pgdyno("run", "insert-benchmark", *TINY, "--factor", "io_method=sync,worker", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    named = list(dict.fromkeys(comparison["workload"] for comparison in document["comparisons"]))
    assert named == [f"insert-benchmark-{step}" for step in STEPS]
    blocks = blocks_of(document["experiment"], home)
    assert {block["workload"] for block in blocks} == set(named)  # on a busy machine some are repeated
    for block in blocks:
        arms = block["arms"]
        assert isinstance(arms, list)
        assert sorted(arm["variant"] for arm in arms) == ["io_method.sync", "io_method.worker"]
        assert all(arm["values"]["throughput_tps"] > 0 for arm in arms)
        has_rate = str(block["workload"]).startswith("insert-benchmark-q")
        assert all(("background_rate_share" in arm["values"]) == has_rate for arm in arms)


@pytest.mark.parametrize("steps", [STEPS[:6], pytest.param(STEPS, marks=pytest.mark.long)], ids=len)
def test_the_faithful_mode_runs_the_steps_too(home: Path, steps: list[str]) -> None:
    """All ten of them differ from the first six in their rates alone."""
    chosen = ("--step", ",".join(steps), "--clients", "1")
    done = pgdyno("run", "insert-benchmark", *TINY, *chosen, "--mode", "faithful", "--json")
    assert done.returncode == 0, done.stderr
    blocks = blocks_of(json.loads(done.stdout)["experiment"], home)
    named = [f"insert-benchmark-{step}" for step in steps]
    assert {block["workload"] for block in blocks} == set(named)  # on a busy machine some are repeated


def test_a_cell_that_misses_its_background_rate_is_shown_and_not_compared(home: Path) -> None:
    # Every commit waits 100 ms: ten commits of 50 rows per second and client, where twenty are asked for.
    done = pgdyno(
        *("run", "insert-benchmark", "--embedded", "--clients", "1", "--rows", "500/100/10", "--blocks", "1"),
        *("--step", "qr1000", "--step-seconds", "2", "--factor", "commit_siblings=0"),
        *("--factor", "commit_delay=0,100000", "--json"),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    blocks = blocks_of(document["experiment"], home)
    slow = [arms_of(block)[1] for block in blocks]
    assert max(arm["values"]["background_rate_share"] for arm in slow) <= 0.55
    (cell,) = document["steps"][0]["variants"][1:]
    assert (cell["is_compared"], cell["relative"]) == (False, None)
    if any(not block["void"] and not arm["void"] for block, arm in zip(blocks, slow, strict=True)):
        # On a busy machine none may count.
        assert cell["is_missed"] is True
        assert cell["background_share"] <= 0.55


def arms_of(block: dict[str, object]) -> list[dict[str, Any]]:
    arms = block["arms"]
    assert isinstance(arms, list)
    return arms


def test_rows_are_x_y_z() -> None:
    done = pgdyno("run", "insert-benchmark", "--embedded", "--rows", "10/20")
    assert done.returncode == 2
    assert '--rows "10/20" is not X/Y/Z' in done.stderr


def test_a_step_that_is_not_known_is_answered_with_the_list() -> None:
    done = pgdyno("run", "insert-benchmark", "--embedded", "--step", "qr200")
    assert done.returncode == 2
    assert 'the Insert Benchmark has no step "qr200"' in done.stderr
    assert f"known: {', '.join(STEPS)}" in done.stderr


@pytest.mark.usefixtures("home")
def test_a_size_that_the_disk_has_no_room_for_is_refused_before_anything_runs() -> None:
    done = pgdyno("run", "insert-benchmark", "--embedded", "--rows", "900000000000/50/5")
    assert done.returncode == 1
    assert "not enough disk space in " in done.stderr
    assert "needed 336\N{NO-BREAK SPACE}TB" in done.stderr  # 2 × 900 billion rows of 205 bytes, by 1024⁴
    assert "choose a smaller --preset or fewer --rows" in done.stderr
    assert "loading" not in done.stderr


def test_a_study_with_workloads_of_its_own_takes_no_others() -> None:
    done = pgdyno("run", "insert-benchmark", "--embedded", "--workload", "pgbench-select")
    assert done.returncode == 2
    assert "this study has its own workloads" in done.stderr


def test_a_study_without_sizes_refuses_a_preset() -> None:
    done = pgdyno("run", "noise-floor", "--embedded", "--workload", "pgbench-select", "--preset", "quick")
    assert done.returncode == 2
    assert "ERROR:  the study noise-floor takes no --preset" in done.stderr
