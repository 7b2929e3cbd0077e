"""How CPUs idled, in a sentence; the sentences are written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment, plan

from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN, Awake, AwakeMeans
from pgdyno.measure.view.awake_sentence import awake_remark, awake_sentence
from pgdyno.measure.view.repeat import repeat_command
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.plan import Terms
from pgdyno.results.page import render_page
from pgdyno.store.documents import dump_experiment, load_experiment

KEPT = Awake(AwakeMeans.HALTPOLL, "", 115.2, 9.04, ("haltpoll.guest_halt_poll_ns=0",))
BOOTED = Awake(
    None, AS_BOOTED_GIVEN, 115.2, None, ("cpuidle_haltpoll.force=1", "haltpoll.guest_halt_poll_ns=0")
)
SENTENCES = {
    KEPT: "CPUs were kept awake by haltpoll, which lets idle CPUs poll before they halt "
    "(wake-up 9.0 µs instead of 115 µs)",
    BOOTED: "CPUs idled as booted (wake-up 115 µs): --as-booted was given; "
    "boot line: cpuidle_haltpoll.force=1 haltpoll.guest_halt_poll_ns=0",
    Awake(
        None, "the kernel has no module haltpoll"
    ): "CPUs idled as booted: the kernel has no module haltpoll",
    Awake(None): "CPUs idled as booted",
}


@pytest.mark.parametrize("awake", SENTENCES)
def test_it_is_one_sentence(awake: Awake) -> None:
    assert awake_sentence(awake) == SENTENCES[awake]


def test_the_page_says_it() -> None:
    assert "wake-up 9.0 µs instead of 115 µs" in render_page(replace(experiment(), awake=KEPT))


def test_the_document_keeps_it() -> None:
    recorded = replace(experiment(), awake=KEPT)
    assert load_experiment(dump_experiment(recorded)).awake == KEPT


def with_plan(awake: Awake | None, *levers: str) -> Experiment:
    """Return the experiment with a plan of which these levers act on wake-ups."""
    line = plan().lines[0]
    lines = [
        replace(line, change=replace(line.change, lever=name), touches_wakeups=True)
        for name in (*levers, *levers)
    ]
    return replace(experiment(), awake=awake, plan=replace(plan(), lines=(line, *lines)), terms=Terms())


def test_figures_with_cpus_awake_are_said_to_be_so_below_the_headline() -> None:
    said = (
        "These figures hold with CPUs kept awake: a wake-up took 9.0 µs, as booted 115 µs; "
        "boot line: haltpoll.guest_halt_poll_ns=0. "
    )
    as_booted = "--as-booted measures without that."
    assert awake_remark(with_plan(KEPT)) == f"{said}{as_booted}"
    depending = awake_remark(with_plan(KEPT, "io_method", "busy_poll"))
    assert depending == f"{said}The worth of io_method and busy_poll depends on that. {as_booted}"
    page = render_page(with_plan(KEPT))
    box = page[page.index('<div class="decision') : page.index('<ul class="reasons">')]
    assert "as booted 115 µs; boot line: haltpoll.guest_halt_poll_ns=0" in box


def test_figures_as_booted_need_no_remark() -> None:
    assert [awake_remark(with_plan(one, "io_method")) for one in (None, BOOTED)] == ["", ""]


def test_the_command_that_measures_again_asks_for_the_same() -> None:
    usual, booted = (repeat_command(replace(experiment(), awake=one)) for one in (KEPT, BOOTED))
    assert usual is not None
    assert booted == f"{usual} --as-booted"
