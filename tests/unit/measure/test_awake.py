"""CPUs are kept awake where that shortens a wake-up, on a directory that looks like a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from tests.unit.apply.machines import SWAPPINESS, carry_out, let_kernel, make_machine, put, value_of
from tests.unit.measure.counted_spinners import CountedSpinners

from pgdyno.apply.host_state import HostState
from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.apply.revert import RevertRequest
from pgdyno.apply.revert_host import revert_host
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import ConnectionFailedError, SettingError, UsageError
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN, GROW_START_NS, MAY_SHRINK, POLL_NS, Awake, AwakeMeans
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import Spinners
from pgdyno.measure.awake import AwakeKeeper, Keeping, Probe, awake_record_of_attached, is_shorter
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.inspection.inspection import inspect_server

BOOTED = {GROW_START_NS: "50000", MAY_SHRINK: "Y", POLL_NS: "0"}
HELD = {GROW_START_NS: "200000", MAY_SHRINK: "N", POLL_NS: "200000"}
DEFAULT = (Variant("default"),)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_machine(tmp_path / "machine")
    for path, value in BOOTED.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        put(root, path, value)
    put(root, "/proc/cmdline", "quiet cpuidle_haltpoll.force=1 root=UUID=1 haltpoll.guest_halt_poll_ns=0")
    return root


@pytest.fixture
def state(root: Path, tmp_path: Path) -> HostState:
    return HostState(tmp_path / "journal", host_writers(root), Tree(root))


def keeper_of(state: HostState, probe: Probe) -> AwakeKeeper:
    """Return what keeps this machine awake, which shows nothing about what its kernel runs on."""
    return AwakeKeeper(state, Spinners(state.tree, (0, 1)), probe)


def shown(root: Path) -> dict[str, str]:
    return {path: value_of(root, path) for path in BOOTED}


def wake_ups(root: Path, *, polled_us: float) -> Probe:
    """Return a probe: 115 µs where the machine does not poll."""
    file = root / POLL_NS.lstrip("/")
    return lambda: polled_us if file.exists() and file.read_text() == "200000\n" else 115.0


LINE = ("cpuidle_haltpoll.force=1", "haltpoll.guest_halt_poll_ns=0")


def test_polling_that_shortens_a_wake_up_is_kept_and_recorded(root: Path, state: HostState) -> None:
    found = keeper_of(state, wake_ups(root, polled_us=9.0)).find(DEFAULT)
    assert found == Keeping(Awake(AwakeMeans.HALTPOLL, "", 115.0, 9.0, LINE), HELD)
    assert shown(root) == BOOTED  # it was a trial


def test_what_is_found_is_held_with_whatever_variants_ask_for(root: Path, state: HostState) -> None:
    found = keeper_of(state, wake_ups(root, polled_us=9.0)).find(DEFAULT)
    held = HostState(state.journal_directory, state.writers, state.tree, found.files)
    with held.holding({}, {"/proc/sys/vm/swappiness": "10"}) as begin_turn:
        assert begin_turn is not None
        assert shown(root) == HELD
        begin_turn(1)
        assert shown(root) == HELD
    assert shown(root) == BOOTED
    assert read_journal(state.journal_directory).open == ()


def test_polling_that_does_not_help_is_given_back_and_not_claimed(root: Path, state: HostState) -> None:
    found = keeper_of(state, wake_ups(root, polled_us=100.0)).find(DEFAULT)
    reason = "polling does not shorten a wake-up (100 µs while active)"
    no_spinners = "the kernel's platform is unknown"
    assert found.record.reason.startswith(f"{reason}; {no_spinners}: ")
    assert replace(found.record, reason="") == Awake(None, "", 115.0, None, LINE)
    assert found.files == {}
    assert shown(root) == BOOTED


@pytest.mark.parametrize(
    ("booted_us", "held_us", "said"),
    [
        (115.0, 9.0, "shorter"),
        (20.0, 15.0, "shorter"),
        (20.0, 15.1, "alike"),
        (None, 9.0, "alike"),
        (20.0, None, "alike"),
    ],
)
def test_shorter_means_by_a_quarter(booted_us: float | None, held_us: float | None, said: str) -> None:
    assert is_shorter(booted_us, held_us) is (said == "shorter")


def reason(state: HostState, variants: tuple[Variant, ...] = DEFAULT, as_booted: str = "") -> str:
    found = keeper_of(state, wake_ups(Path(state.tree.root), polled_us=9.0))
    kept = found.find(variants, as_booted)
    assert kept.files == {}
    assert kept.record.means is None
    return kept.record.reason.partition("; ")[0]  # then it says why nothing spins


def test_nobody_is_kept_awake_who_does_not_want_it(root: Path, state: HostState) -> None:
    assert reason(state, as_booted=AS_BOOTED_GIVEN) == "--as-booted was given"
    assert not state.journal_directory.exists()


def test_variants_that_choose_how_cpus_idle_are_left_their_choice(state: HostState) -> None:
    polling = Variant("polling", {POLL_NS: "200000"})
    assert reason(state, variants=(*DEFAULT, polling)) == f"the variants set {POLL_NS} themselves"


def test_without_the_module_nothing_polls(root: Path, state: HostState) -> None:
    (root / POLL_NS.lstrip("/")).unlink()
    assert reason(state) == "the kernel has no module haltpoll"


def test_a_machine_that_polls_already_is_left_as_it_is(root: Path, state: HostState) -> None:
    for path, value in HELD.items():
        put(root, path, value)
    assert reason(state) == "CPUs already poll before they halt"


def test_polling_that_would_not_end_is_not_begun(root: Path, state: HostState) -> None:
    put(root, MAY_SHRINK, "N")
    assert reason(state) == f"{MAY_SHRINK} is N: CPUs would continue polling afterwards"


def leave(root: Path, state: HostState, files: dict[str, str]) -> None:
    """Leave a machine as a killed trial does."""
    with open_journal(state.journal_directory) as opened:
        carry_out(root, opened, files, "trial-1")


@pytest.mark.parametrize("as_booted", ["", AS_BOOTED_GIVEN])
def test_what_a_killed_measurement_has_left_is_restored_first(
    root: Path, state: HostState, as_booted: str
) -> None:
    leave(root, state, HELD)
    found = keeper_of(state, wake_ups(root, polled_us=9.0)).find(DEFAULT, as_booted)
    assert found.record.booted_us == 115.0
    assert (found.record.means is None) is bool(as_booted)
    assert shown(root) == BOOTED
    assert read_journal(state.journal_directory).open == ()


def test_what_a_killed_trial_has_left_of_others_is_the_users_to_revert(root: Path, state: HostState) -> None:
    leave(root, state, {SWAPPINESS: "10"})
    assert reason(state) == "an earlier trial (trial-1) was interrupted on this machine"
    assert value_of(root, SWAPPINESS) == "10"


def test_a_killed_measurement_can_be_reverted_by_itself(root: Path, state: HostState) -> None:
    leave(root, state, HELD)
    access = ServerAccess(_no_server, state.journal_directory, inspect_server, host_writers=state.writers)
    assert revert_host(access, RevertRequest()).is_complete
    assert shown(root) == BOOTED


def _no_server() -> NoReturn:
    raise ConnectionFailedError("no server is asked")


def test_while_somebody_else_changes_the_machine_it_is_left_as_it_is(state: HostState) -> None:
    with open_journal(state.journal_directory):
        assert reason(state).startswith("another pgdyno process is making changes on this host")


def test_a_kernel_that_refuses_is_left_as_it_is(
    root: Path, state: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def react(_root: Path, path: str, value: str) -> str:
        if path == POLL_NS and value == "200000":
            raise SettingError("the kernel does not take it")
        return value

    let_kernel(monkeypatch, react)
    assert reason(state) == "the kernel does not take it"
    assert shown(root) == BOOTED


KEPT = Awake(AwakeMeans.HALTPOLL, "", 115.0, 9.0, LINE)


def test_what_is_continued_goes_on_as_it_was(state: HostState) -> None:
    keeper = keeper_of(state, lambda: pytest.fail("nothing is tried"))
    assert keeper.again(KEPT, is_wanted=True) == Keeping(KEPT, HELD)
    booted = Awake(None, "--as-booted was given", 115.0)
    assert keeper.again(booted, is_wanted=True) == Keeping(booted)
    assert keeper.again(None, is_wanted=True) == Keeping(Awake(None))


def test_what_was_kept_awake_is_not_continued_otherwise(root: Path, state: HostState) -> None:
    keeper = keeper_of(state, lambda: 115.0)
    with pytest.raises(UsageError) as caught:
        keeper.again(KEPT, is_wanted=False)
    assert str(caught.value) == (
        "the experiment was measured with CPUs kept awake\nHINT:  leave out --as-booted"
    )
    (root / POLL_NS.lstrip("/")).unlink()
    with pytest.raises(UsageError) as caught:
        keeper.again(KEPT, is_wanted=True)
    assert str(caught.value) == (
        "the experiment was measured with CPUs kept awake, but that is not possible now\n"
        "DETAIL:  the kernel has no module haltpoll\n"
        "HINT:  repeat its command line without --resume"
    )


@pytest.fixture
def spinners(root: Path, state: HostState) -> CountedSpinners:
    """Those of a machine that cannot poll and may spin."""
    (root / POLL_NS.lstrip("/")).unlink()
    return CountedSpinners(state.tree, (0, 1))


def test_where_nothing_polls_processes_keep_cpus_awake(state: HostState, spinners: CountedSpinners) -> None:
    found = AwakeKeeper(state, spinners, lambda: 12.0 if spinners.running else 115.0).find(DEFAULT)
    assert found.record == Awake(AwakeMeans.SPINNERS, "", 115.0, 12.0, LINE)
    assert found.files == {}
    assert spinners.running == []
    again = AwakeKeeper(state, spinners).again(found.record, is_wanted=True)
    for keeping in (found, again):
        with keeping.spin() as pids:
            assert spinners.running == [0, 1]
            assert pids == (0, 1)


def test_processes_that_do_not_help_are_ended_and_not_claimed(
    state: HostState, spinners: CountedSpinners
) -> None:
    found = AwakeKeeper(state, spinners, lambda: 100.0 if spinners.running else 115.0).find(DEFAULT)
    reason = "the kernel has no module haltpoll; spinning does not shorten a wake-up (100 µs while active)"
    assert found == Keeping(Awake(None, reason, 115.0, None, LINE))
    assert spinners.running == []


def test_the_machine_of_somebodys_server_is_looked_at_only_where_it_is_this_one(
    root: Path, state: HostState
) -> None:
    reason = "while measuring, pgdyno changes the host only for servers that it starts"
    assert awake_record_of_attached(state, is_here=False, probe=lambda: 115.0) == Awake(None, reason)
    assert awake_record_of_attached(state, is_here=True, probe=lambda: 115.0) == Awake(
        None, reason, 115.0, None, LINE
    )
    assert shown(root) == BOOTED
