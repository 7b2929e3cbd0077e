"""Sources of a warm start: searches and experiments, by id or file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_settings import server_of
from tests.golden.synthetic import experiment
from tests.golden.synthetic_tuning import tuning

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.results.bundle import export_bundle
from pgdyno.app.tuning.earlier_configurations import (
    EarlierConfiguration,
    earlier_configurations,
    first_points,
)
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.model.errors import StorageError, UsageError
from pgdyno.model.experiments.experiment import Design, Slice
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import Dimension, Space
from pgdyno.model.variants.variant import Variant
from pgdyno.server.process.installation import Installation
from pgdyno.store.tunings import save_tuning

PLAN = {"shared_buffers": "2GB", "max_wal_size": "8GB", "work_mem": "16MB"}  # the synthetic experiment's


def no_slices(_workload: str, _round: int, _index: int) -> Sequence[Slice]:
    return ()


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


def settings(source: str | Path, version: str = "18.6") -> dict[str, str]:
    installation = Installation(Path("/nowhere"), version, int(version[:2]), "embedded")
    conditions = Conditions(installation, {}, Design())
    request = TuneRequest(conditions, Variant("default"), 60.0, warm_start=(str(source),))
    (found,) = earlier_configurations(request)
    assert found.source == str(source)
    return dict(found.settings)


def test_a_search_is_known_by_its_id_and_by_its_file(tmp_path: Path) -> None:
    save_tuning(workspace().experiments(), tuning())
    save_tuning(tmp_path, replace(tuning(), id="elsewhere"))
    assert settings(tuning().id) == tuning().answer
    assert settings(tmp_path / "elsewhere.tuning.json") == tuning().answer


def test_a_search_without_an_answer_gives_its_best_trial(tmp_path: Path) -> None:
    save_tuning(tmp_path, replace(tuning(), id="short", answer={}))
    assert settings(tmp_path / "short.tuning.json")["plan_cache_mode"] == "force_generic_plan"


def test_an_experiment_gives_its_plan(tmp_path: Path) -> None:
    with closing(open_store()) as store:
        store.save(experiment())
    assert settings(experiment().id) == PLAN
    bundle = export_bundle(experiment(), tmp_path / "b.zip", slices_of=no_slices)
    assert settings(bundle) == PLAN


def test_an_answer_goes_before_the_plan() -> None:
    tuned = Variant("tuned", {"work_mem": "64MB"})
    with closing(open_store()) as store:
        store.save(replace(experiment(), variants=(*experiment().variants, tuned)))
    assert settings(experiment().id) == {"work_mem": "64MB"}


def test_another_major_version_is_refused(tmp_path: Path) -> None:
    bundle = export_bundle(experiment(), tmp_path / "b.zip", slices_of=no_slices)
    for source in (bundle, tmp_path / "s.tuning.json"):
        save_tuning(tmp_path, replace(tuning(), id="s"))
        with pytest.raises(UsageError, match="is of PostgreSQL 18") as caught:
            settings(source, "17.2")
        assert "PostgreSQL 17" in str(caught.value.detail)
        assert "of the same major version" in str(caught.value.hint)


def test_a_source_without_a_configuration_is_refused(tmp_path: Path) -> None:
    save_tuning(tmp_path, replace(tuning(), id="nothing", answer={}, trials=()))
    with pytest.raises(UsageError, match="has no configuration to begin with"):
        settings(tmp_path / "nothing.tuning.json")


def test_a_damaged_bundle_and_an_unknown_id_are_errors(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK")
    with pytest.raises(StorageError):
        settings(tmp_path / "b.zip")
    with pytest.raises(StorageError):
        settings("20200101-000000-tune")


def space(*values: str) -> Space:
    return Space((Dimension("shared_buffers", Layer.APPLICATION, values, "128MB"),))


def test_first_points_are_of_the_space_and_are_said() -> None:
    earlier = [EarlierConfiguration("mine.zip", PLAN)]
    (found,) = first_points(space("512MB", "1536MB", "6GB"), earlier, server_of())
    assert found.point == {"shared_buffers": "1536MB"}
    assert found.note == (
        "tried after the plan, as it is in mine.zip or nearest to that: shared_buffers=1536MB"
    )


def test_a_source_that_shares_nothing_with_the_space_is_refused() -> None:
    earlier = [EarlierConfiguration("mine.zip", {"jit": "off"})]
    with pytest.raises(UsageError, match=r'nothing of "mine\.zip" can be tried here') as caught:
        first_points(space("6GB"), earlier, server_of())
    assert caught.value.detail == "it sets jit; this search varies shared_buffers"
