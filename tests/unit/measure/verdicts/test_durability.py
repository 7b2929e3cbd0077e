"""What was read back of servers' durability decides whether they may be compared."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.golden.synthetic import experiment as synthetic

from pgdyno.measure.verdicts.consistency import contradictions
from pgdyno.measure.verdicts.durability import breaches, doubts, is_hopeless, warnings, withhold
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.variants.durability import DurabilityReading
from pgdyno.model.variants.variant import Variant
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table

SAFE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "data_checksums": "on",
    "synchronous_standby_names": "",
    "shared_preload_libraries": "",
}


def read_back(
    plan: dict[str, str] | None = None,
    default: dict[str, str] | None = None,
    *,
    asked: dict[str, str] | None = None,
    **of_plan: object,
) -> Experiment:
    """Return an experiment whose two servers showed what is safe, and besides what is given."""
    readings = (
        DurabilityReading("default", SAFE | (default or {})),
        replace(DurabilityReading("plan", SAFE | (plan or {})), **of_plan),  # type: ignore[arg-type]
    )
    variants = (Variant("default"), Variant("plan", asked or {}))
    return replace(synthetic(), variants=variants, durability=readings)


def test_servers_that_show_what_is_safe_leave_verdicts_as_they_are() -> None:
    experiment = read_back()
    assert withhold(experiment.verdicts, experiment) == experiment.verdicts
    assert (warnings(experiment), is_hopeless(experiment)) == ((), False)
    assert Decision.BETTER in {verdict.decision for verdict in experiment.verdicts}


def test_experiments_without_readings_leave_verdicts_as_they_are() -> None:
    experiment = synthetic()
    assert withhold(experiment.verdicts, experiment) == experiment.verdicts
    assert warnings(experiment) == ()


def test_an_unsafe_value_that_the_variant_does_not_ask_for_withholds_every_verdict() -> None:
    experiment = read_back({"synchronous_commit": "off"})
    why = (
        "the server of plan ran with synchronous_commit=off, which its variant does not set: "
        "a crash can lose transactions that were reported as committed"
    )
    assert breaches(experiment, "plan") == (why,)
    differ = "synchronous_commit differs, but neither variant sets it: on (default), off (plan)"
    for verdict in withhold(experiment.verdicts, experiment):
        assert (verdict.decision, verdict.is_withheld) == (Decision.INCONCLUSIVE, True)
        assert verdict.reason == f"not comparable: {why}; {differ}"
    assert warnings(experiment) == (f"NOT DURABLE: {why}", f"NOT COMPARABLE: {differ}")
    assert is_hopeless(experiment)


def test_an_unsafe_value_on_both_servers_counts_too() -> None:
    experiment = read_back({"fsync": "off"}, {"fsync": "off"})
    assert [why.split(",")[0] for why in doubts(experiment, "default", "plan")] == [
        "the server of default ran with fsync=off",
        "the server of plan ran with fsync=off",
    ]


@pytest.mark.parametrize("spelling", ["off", "OFF", "false", "no", "0"])
def test_an_unsafe_value_that_the_variant_asks_for_is_marked_elsewhere(spelling: str) -> None:
    experiment = read_back({"fsync": "off"}, asked={"fsync": spelling})
    assert doubts(experiment, "default", "plan") == ()


def test_a_variant_that_asks_for_another_unsafe_value_than_it_got_is_in_doubt() -> None:
    experiment = read_back({"synchronous_commit": "off"}, asked={"synchronous_commit": "local"})
    assert len(doubts(experiment, "default", "plan")) == 1


def test_a_value_that_changed_during_the_run_is_seen_beside_the_first_one() -> None:
    experiment = read_back()
    later = DurabilityReading("plan", SAFE | {"full_page_writes": "off"})
    experiment = replace(experiment, durability=(*experiment.durability, later))
    assert breaches(experiment, "plan") == (
        (
            "the server of plan ran with full_page_writes=off, which its variant does not set: "
            "a crash during a write can leave torn pages that recovery cannot repair"
        ),
    )
    assert doubts(experiment, "default", "plan")[1] == (
        "full_page_writes differs, but neither variant sets it: on (default), on and off (plan)"
    )


def test_checksums_that_both_lack_are_what_the_cluster_was_created_with() -> None:
    both = read_back({"data_checksums": "off"}, {"data_checksums": "off"})
    assert doubts(both, "default", "plan") == ()
    one = read_back({"data_checksums": "off"})
    assert doubts(one, "default", "plan") == (
        "data_checksums differs, but neither variant sets it: on (default), off (plan)",
    )


def test_a_library_in_place_of_fsync_is_named_with_what_it_replaces() -> None:
    experiment = read_back(replaced={"libeatmydata.so": ("fdatasync", "fsync")})
    assert breaches(experiment, "plan") == (
        (
            "the server of plan ran with libeatmydata.so, which replaces fdatasync, fsync: "
            "written data may not be on disk"
        ),
    )


def test_a_variable_for_the_loader_that_one_server_has_is_a_difference_unless_it_is_asked_for() -> None:
    loader = {"LD_PRELOAD": "libjemalloc.so.2"}
    assert doubts(read_back(loader=loader), "default", "plan") == (
        "LD_PRELOAD differs, but neither variant sets it: not set (default), libjemalloc.so.2 (plan)",
    )
    asked = read_back(loader=loader, asked={"env.LD_PRELOAD": "libjemalloc.so.2"})
    assert doubts(asked, "default", "plan") == ()


def test_preloaded_libraries_and_standbys_may_not_differ_unasked() -> None:
    for name in ("shared_preload_libraries", "synchronous_standby_names"):
        assert doubts(read_back({name: "x"}), "default", "plan") == (
            f"{name} differs, but neither variant sets it: empty (default), x (plan)",
        )
        assert doubts(read_back({name: "x"}, asked={name: "x"}), "default", "plan") == ()


def test_a_setting_that_one_version_does_not_have_is_no_difference() -> None:
    experiment = read_back()
    older = DurabilityReading("default", {name: SAFE[name] for name in ("fsync", "synchronous_commit")})
    experiment = replace(experiment, durability=(older, experiment.durability[1]))
    assert doubts(experiment, "default", "plan") == ()


def test_a_bundle_whose_verdicts_overlook_what_was_read_back_contradicts_itself() -> None:
    assert contradictions(read_back()) == ()
    (first, *_) = contradictions(read_back({"fsync": "off"}))
    assert first == 'a verdict is on "plan", but its server was less durable than the variant'
    experiment = read_back({"fsync": "off"})
    assert contradictions(replace(experiment, verdicts=withhold(experiment.verdicts, experiment))) == ()


def test_terminal_and_page_say_it_above_everything_else() -> None:
    experiment = read_back(replaced={"libeatmydata.so": ("fsync",)})
    experiment = replace(experiment, verdicts=withhold(experiment.verdicts, experiment))
    said = "NOT DURABLE: the server of plan ran with libeatmydata.so, which replaces fsync"
    console = Console(file=io.StringIO(), width=200)
    console.print(verdict_table(experiment))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[1].startswith(said)
    assert said in render_page(experiment)
