"""A build is trained on a captured workload: on a copy of its database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import SettingError
from pgdyno.builds.training import _Course, _train_on_one_server, check_settings
from pgdyno.builds.training_workloads import find_training_workloads, identity
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.experiments.workload import CapturedLoad
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.registry import embedded
from pgdyno.workload.bundled import load as bundled_workloads
from pgdyno.workload.workload_choice import captured_workload

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]


def test_it_is_run_and_then_chores_outside_the_copy(workload_file: Path) -> None:
    said, shares = Remembered(), list[float]()
    course = _Course(said, shares.append, count=2, training_s=1.0)
    [lesson], variant = find_training_workloads([str(workload_file)]), Variant("training")
    with open_scratch_arena(embedded(), [variant], said, is_isolated=False, is_timed=False) as arena:
        _train_on_one_server(arena, variant, [lesson], course)
    assert said.steps[-2:] == ["training on w", "training on chores"]
    assert shares == [0.5, 1.0]


def test_it_is_known_by_what_it_is_and_by_its_copy(workload_file: Path) -> None:
    first = captured_workload(workload_file)
    assert first.captured is not None
    other = replace(first.captured, transactions=first.captured.transactions[:1])
    larger = replace(first.data_set, options={"of": "another"})
    names = {
        identity(one)
        for one in (first, replace(first, kind=CapturedLoad(other)), replace(first, data_set=larger))
    }
    assert len(names) == 3
    assert all(name.startswith("w-") for name in names)
    assert identity(captured_workload(workload_file)) == identity(first)
    assert identity(bundled_workloads()["pgbench-select"]) == "pgbench-select"


def test_its_file_takes_settings_like_any_name(workload_file: Path) -> None:
    [plain, lesson] = find_training_workloads(
        [str(workload_file), f"{workload_file}:plan_cache_mode=force_generic_plan"]
    )
    assert lesson.workload == plain.workload
    assert lesson.identity == f"{plain.identity}:plan_cache_mode=force_generic_plan"
    assert str(lesson.variant) == "w:plan_cache_mode=force_generic_plan"


def test_a_setting_that_the_server_does_not_have_is_refused_in_its_own_words() -> None:
    check_settings(
        embedded(), find_training_workloads(["pgbench-tpcb:plan_cache_mode=force_generic_plan"]), Remembered()
    )
    with pytest.raises(SettingError) as caught:
        check_settings(embedded(), find_training_workloads(["pgbench-tpcb:plan_cache=on"]), Remembered())
    assert caught.value.message == 'unrecognized configuration parameter "plan_cache"'
