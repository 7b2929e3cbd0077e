"""Sources of a warm start: searches and experiments, by id or file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.golden.synthetic import READ_ONLY, READ_WRITE, experiment
from tests.golden.synthetic_front import experiment as front
from tests.golden.synthetic_tuning import tuning

from pgdyno.app.local_machine import open_store, workspace
from pgdyno.app.measuring.conditions import Conditions
from pgdyno.app.results.bundle import export_bundle
from pgdyno.app.tuning.earlier_configurations import EarlierConfiguration, earlier_configurations
from pgdyno.app.tuning.tune_request import TuneRequest
from pgdyno.model.errors import StorageError, UsageError
from pgdyno.model.experiments.experiment import Design, Experiment, Slice
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.variant import Variant
from pgdyno.server.process.installation import Installation
from pgdyno.store.tunings import save_tuning

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


def found_at(
    source: str | Path, version: str = "18.6", said: Remembered | None = None
) -> tuple[EarlierConfiguration, ...]:
    installation = Installation(Path("/nowhere"), version, int(version[:2]), "embedded")
    conditions = Conditions(installation, {}, Design())
    request = TuneRequest(conditions, Variant("default"), 60.0, warm_start=(str(source),))
    return earlier_configurations(request, said or Remembered())


def settings(source: str | Path, version: str = "18.6") -> dict[str, str]:
    (found,) = found_at(source, version)
    assert (found.source, found.is_named) == (str(source), True)
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


def test_a_front_gives_its_first_member_before_the_plan() -> None:
    with closing(open_store()) as store:
        store.save(front())
        store.save(replace(front(), id="alone", variants=front().variants[:2]))
    assert {"default", "member-1", "plan"} <= {one.name for one in front().variants}
    assert settings(front().id)["plan_cache_mode"] == "force_generic_plan"
    assert settings("alone")["plan_cache_mode"] == "force_generic_plan"


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
    with pytest.raises(UsageError, match="has no configuration to begin with") as caught:
        settings(tmp_path / "nothing.tuning.json")
    assert 'a variant named "tuned", "member-1" or "plan" with changes' in str(caught.value.detail)


def test_a_damaged_bundle_and_an_unknown_id_are_errors(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK")
    with pytest.raises(StorageError):
        settings(tmp_path / "b.zip")
    with pytest.raises(StorageError):
        settings("20200101-000000-tune")


def test_a_search_is_of_the_host_of_its_proof_if_that_is_here(tmp_path: Path) -> None:
    save_tuning(tmp_path, replace(tuning(), id="s", experiment=experiment().id))
    (found,) = found_at(tmp_path / "s.tuning.json")
    assert (found.circumstances.major, found.circumstances.cpus) == (18, None)
    with closing(open_store()) as store:
        store.save(experiment())
    (found,) = found_at(tmp_path / "s.tuning.json")
    assert (found.circumstances.major, found.circumstances.cpus) == (18, 6)


def test_all_stored_experiments_with_a_configuration_are_candidates() -> None:
    with closing(open_store()) as store:
        store.save(replace(experiment(), id="older"))
        store.save(replace(experiment(), id="of-17", server={"version": "17.2"}))
        store.save(replace(experiment(), id="only-default", variants=(Variant("default"),)))
        store.save(replace(experiment(), id="x-accelerate-at-load"))
    found = found_at("similar")
    assert [one.source for one in found] == ["of-17", "older"]
    assert not any(one.is_named for one in found)
    assert [one.circumstances.major for one in found] == [17, 18]
    assert dict(found[1].settings) == PLAN


@pytest.mark.parametrize(
    ("decisions", "is_left_out"),
    [
        ((Decision.WORSE, Decision.INCONCLUSIVE), True),
        ((Decision.WORSE, Decision.EQUIVALENT), True),
        ((Decision.WORSE, Decision.BETTER), False),  # the load here may be like the other one
        ((Decision.INCONCLUSIVE, Decision.EQUIVALENT), False),
    ],
)
def test_what_was_slower_than_the_default_is_left_out(
    decisions: tuple[Decision, Decision], *, is_left_out: bool
) -> None:
    with closing(open_store()) as store:
        store.save(with_throughput(dict(zip((READ_ONLY, READ_WRITE), decisions, strict=True))))
    (found,) = found_at("similar")
    assert found.problem == ("it was slower there than the default" if is_left_out else "")
    (named,) = found_at(experiment().id)
    assert (named.problem, named.is_named) == (found.problem, True)


def test_a_search_says_that_its_answer_was_slower_in_its_proof(tmp_path: Path) -> None:
    slower = with_throughput({READ_ONLY: Decision.WORSE, READ_WRITE: Decision.WORSE})
    tuned = tuple(replace(one, variant="tuned") for one in slower.verdicts)
    save_tuning(tmp_path, replace(tuning(), id="s", experiment=slower.id))
    for verdicts, said in ((slower.verdicts, ""), (tuned, "it was slower there than the default")):
        with closing(open_store()) as store:
            store.save(replace(slower, verdicts=verdicts))
        assert found_at(tmp_path / "s.tuning.json")[0].problem == said


def test_bundles_of_a_directory_are_candidates_and_a_damaged_one_says_so(tmp_path: Path) -> None:
    bundles = tmp_path / "bundles"
    bundles.mkdir()
    export_bundle(experiment(), bundles / "a.zip", slices_of=no_slices)
    (bundles / "b.zip").write_bytes(b"PK")
    (bundles / "notes.txt").write_text("no bundle")
    os.mkfifo(bundles / "c.zip")  # which is not waited for
    said = Remembered()
    first, second = found_at(bundles, said=said)
    assert said.steps == [f"reading the bundles in {bundles}"]
    assert (first.source, first.problem) == (str(bundles / "a.zip"), "")
    assert (first.circumstances.memory_bytes, first.created) == (10 << 30, experiment().created)
    assert (second.source, second.problem) == (str(bundles / "b.zip"), f'"{bundles}/b.zip" is not a bundle')


def test_where_none_has_a_configuration_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='no experiment in "') as caught:
        found_at(tmp_path)
    assert "pgdyno bundle import" in str(caught.value.hint)
    with pytest.raises(UsageError, match="no experiment stored here has a configuration to begin with"):
        found_at("similar")
