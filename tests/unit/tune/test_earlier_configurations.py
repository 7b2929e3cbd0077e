"""Sources of a warm start: searches and experiments, by id or file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.fix_settings import server_of
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_tuning import tuning

from pgdyno.base.errors import StorageError, UsageError
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design, Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import BUILD, Dimension, Point, Space, TrialRound, TrialState
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.results.bundle import export_bundle
from pgdyno.store.experiments import open_store
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.earlier_configurations import (
    EarlierConfiguration,
    FirstPoints,
    WarmStart,
    earlier_configurations,
    point_within,
    warm_start,
)
from pgdyno.tune.search.samplers import load
from pgdyno.tune.search.searching import search
from pgdyno.tune.tune_request import TuneRequest

PLAN = {"shared_buffers": "2GB", "max_wal_size": "8GB", "work_mem": "16MB"}  # the synthetic experiment's


def no_slices(_workload: str, _round: int, _index: int) -> Sequence[Slice]:
    return ()


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_HOME", str(tmp_path / "home"))


def with_throughput(decisions: Mapping[str, Decision]) -> Experiment:
    """Return the synthetic experiment with other verdicts on its plan's throughput."""
    verdicts = tuple(
        replace(one, decision=decisions[one.workload]) if one.metric == THROUGHPUT else one
        for one in experiment().verdicts
    )
    return replace(experiment(), verdicts=verdicts)


def found_at(source: str | Path, version: str = "18.6") -> EarlierConfiguration:
    installation = Installation(Path("/nowhere"), version, int(version[:2]), "embedded")
    conditions = Conditions(installation, {}, Design())
    request = TuneRequest(conditions, Variant("default"), 60.0, warm_start=(str(source),))
    (found,) = earlier_configurations(request)
    return found


def settings(source: str | Path, version: str = "18.6") -> dict[str, str]:
    found = found_at(source, version)
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
        with pytest.raises(UsageError, match="is from PostgreSQL 18") as caught:
            settings(source, "17.2")
        assert "PostgreSQL 17" in str(caught.value.detail)
        assert "of the same major version" in str(caught.value.hint)


def test_a_source_without_a_configuration_is_refused(tmp_path: Path) -> None:
    save_tuning(tmp_path, replace(tuning(), id="nothing", answer={}, trials=()))
    with pytest.raises(UsageError, match="has no configuration to begin with") as caught:
        settings(tmp_path / "nothing.tuning.json")
    assert 'a variant named "tuned" or "plan" with changes' in str(caught.value.detail)


def test_a_search_for_several_aims_has_no_configuration_to_begin_with(tmp_path: Path) -> None:
    save_tuning(tmp_path, replace(tuning(), id="front", answer={}, aims=("throughput", "wal")))
    with pytest.raises(UsageError, match="has no configuration to begin with"):
        settings(tmp_path / "front.tuning.json")


def test_a_damaged_bundle_and_an_unknown_id_are_errors(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK")
    with pytest.raises(StorageError):
        settings(tmp_path / "b.zip")
    with pytest.raises(StorageError):
        settings("20200101-000000-tune")


@pytest.mark.parametrize(
    ("decisions", "is_slower"),
    [
        ((Decision.WORSE, Decision.INCONCLUSIVE), True),
        ((Decision.WORSE, Decision.EQUIVALENT), True),
        ((Decision.WORSE, Decision.BETTER), False),  # the load here may be like the other one
        ((Decision.INCONCLUSIVE, Decision.EQUIVALENT), False),
    ],
)
def test_what_was_slower_than_the_default_is_named_as_such(
    decisions: tuple[Decision, Decision], *, is_slower: bool
) -> None:
    with closing(open_store()) as store:
        store.save(with_throughput(dict(zip((READ_ONLY, READ_WRITE), decisions, strict=True))))
    said = "it was slower there than the default" if is_slower else ""
    assert found_at(experiment().id).problem == said


def test_a_search_says_that_its_answer_was_slower_in_its_proof(tmp_path: Path) -> None:
    slower = with_throughput({READ_ONLY: Decision.WORSE, READ_WRITE: Decision.WORSE})
    tuned = tuple(replace(one, variant="tuned") for one in slower.verdicts)
    save_tuning(tmp_path, replace(tuning(), id="s", experiment=slower.id))
    for verdicts, said in ((slower.verdicts, ""), (tuned, "it was slower there than the default")):
        with closing(open_store()) as store:
            store.save(replace(slower, verdicts=verdicts))
        assert found_at(tmp_path / "s.tuning.json").problem == said


SPACE = Space(
    (
        Dimension("shared_buffers", Layer.APPLICATION, ("512MB", "1536MB", "6GB"), "128MB", planned="512MB"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB", "256MB"), "4MB"),
    )
)


def begun(*found: EarlierConfiguration) -> WarmStart:
    said = Remembered()
    start = warm_start(SPACE, found, server_of(), said)
    assert said.steps == list(start.notes)
    return start


def test_the_nearest_values_of_the_space_are_tried_and_a_reason_against_them_is_said() -> None:
    slower = EarlierConfiguration("b.zip", {"work_mem": "64MB"}, 18, "it was slower there than the default")
    found = begun(EarlierConfiguration("a.zip", {"shared_buffers": "2GB", "fsync": "off"}, 18), slower)
    assert found.points == ({"shared_buffers": "1536MB"}, {"work_mem": "64MB"})
    tried = "tried after the plan, as in"
    assert found.notes == (
        f"{tried} a.zip or nearest to it: shared_buffers=1536MB",
        f"{tried} b.zip or nearest to it: work_mem=64MB (it was slower there than the default)",
    )


def test_one_that_shares_nothing_with_the_space_is_refused() -> None:
    with pytest.raises(UsageError, match=r'no setting of "mine\.zip" can be tried here') as caught:
        begun(EarlierConfiguration("mine.zip", {"jit": "off"}, 18))
    assert caught.value.detail == "it sets jit; this search varies shared_buffers, work_mem"


SEARCHED = Space(
    (
        Dimension("shared_buffers", Layer.APPLICATION, ("1000", "4000"), "128", planned="4000"),
        Dimension("commit_delay", Layer.APPLICATION, ("20", "100"), "0"),
        Dimension("wal_compression", Layer.APPLICATION, ("pglz", "lz4"), "off"),
        Dimension(BUILD, Layer.COMPILER, ("built-1",), "the wheel's"),
    )
)


def number_of(_key: str, value: str) -> float | None:
    return float(value) if value.isdigit() else None


@pytest.mark.parametrize(
    ("settings", "point"),
    [
        ({"shared_buffers": "1000"}, {"shared_buffers": "1000"}),
        ({"shared_buffers": "1900"}, {"shared_buffers": "1000"}),  # 1.9 times; 4000 is 2.1 times
        ({"shared_buffers": "2100"}, {"shared_buffers": "4000"}),
        ({"shared_buffers": "64000"}, {"shared_buffers": "4000"}),
        ({"shared_buffers": "130"}, {}),  # the one found is nearest
        ({"commit_delay": "0"}, {}),
        ({"commit_delay": "30"}, {"commit_delay": "20"}),
        ({"wal_compression": "lz4"}, {"wal_compression": "lz4"}),
        ({"wal_compression": "zstd"}, {}),  # of names none is nearest
        ({BUILD: "built-1", "jit": "off"}, {BUILD: "built-1"}),
        ({BUILD: "built-2"}, {}),
        ({}, {}),
    ],
)
def test_a_configuration_becomes_the_nearest_point(settings: Point, point: Point) -> None:
    assert point_within(SEARCHED, settings, number_of) == point


@pytest.mark.parametrize("name", ["guided", "random"])
def test_first_points_are_tried_after_the_plan_and_before_the_samplers_own(name: str) -> None:
    first = [SEARCHED.plan, {"shared_buffers": "1000"}, {"wal_compression": "lz4"}]
    sampler = FirstPoints(load()[name].make(SEARCHED, 1), list(first))

    def measure(incumbent: Point, candidate: Point) -> TrialRound:
        lead = 0.3 * (len(candidate) - len(incumbent)) - 0.1
        return TrialRound(lead, lead, 0.0)

    trials = search(sampler, measure, lambda _: None, lambda _: "")
    points = [trial.point for _, trial in zip(range(5), trials, strict=False)]
    assert points[:3] == first
    assert points[3] not in first


def test_a_first_point_has_to_win_like_any_other() -> None:
    sampler = FirstPoints(load()["guided"].make(SEARCHED, 1), [{"wal_compression": "lz4"}])

    def measure(incumbent: Point, candidate: Point) -> TrialRound:
        assert (incumbent, candidate) == ({}, {"wal_compression": "lz4"})
        return TrialRound(-0.2, -0.2, 0.0)

    trial = next(search(sampler, measure, lambda _: None, lambda _: ""))
    assert (trial.point, trial.state) == ({"wal_compression": "lz4"}, TrialState.LOST)
