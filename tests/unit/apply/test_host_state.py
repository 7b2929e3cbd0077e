"""A trial gives the machine back as it found it, on a directory that looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.apply.machines import (
    AUTOGROUP,
    POOL,
    SWAPPINESS,
    carry_out,
    let_kernel,
    make_machine,
    put,
    value_of,
)

from pgdyno.apply.host_state import HostState
from pgdyno.apply.ledger.log import open_journal, read_journal
from pgdyno.apply.revert import RevertRequest
from pgdyno.apply.revert_host import revert_host
from pgdyno.apply.runs.host_run import host_target, host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.base.errors import (
    ConnectionFailedError,
    LockHeldError,
    OwnershipError,
    PgdynoError,
    RefusedError,
    ServerCrashedError,
    SettingError,
    StillChangedError,
    StorageError,
)
from pgdyno.host.files.tree import Tree
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.workspace import JOURNAL_FILE

WANTED = {SWAPPINESS: "10", AUTOGROUP: "0"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_machine(tmp_path / "machine")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def state(root: Path, journal: Path) -> HostState:
    return HostState(journal, host_writers(root))


def shown(root: Path) -> list[str]:
    return [value_of(root, path) for path in WANTED]


def refused(state: HostState, error: type[PgdynoError]) -> str:
    """Begin a trial that must not begin."""
    with pytest.raises(error) as caught, state.holding(WANTED):
        pytest.fail("the trial began")
    return str(caught.value)


def test_the_values_hold_for_the_time_of_the_trial(root: Path, state: HostState, journal: Path) -> None:
    with state.holding(WANTED):
        assert shown(root) == ["10", "0"]
    assert shown(root) == ["60", "1"]
    assert read_journal(journal).open == ()


def test_a_trial_that_asks_for_nothing_has_no_journal(state: HostState, journal: Path) -> None:
    state.check({})
    with state.holding({}):
        pass
    assert not journal.exists()


@pytest.mark.parametrize("error", [ServerCrashedError("the server is gone"), KeyboardInterrupt()])
def test_what_was_found_comes_back_after_whatever_ends_the_trial(
    root: Path, state: HostState, journal: Path, error: BaseException
) -> None:
    with pytest.raises(type(error)), state.holding(WANTED):
        raise error
    assert shown(root) == ["60", "1"]
    assert read_journal(journal).open == ()


def test_a_value_that_the_kernel_refuses_ends_the_trial_before_it_begins(
    root: Path, state: HostState, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def react(_root: Path, path: str, value: str) -> str:
        if (path, value) == (AUTOGROUP, "0"):
            raise SettingError("the kernel does not take it")
        return value

    let_kernel(monkeypatch, react)
    assert refused(state, SettingError) == "the kernel does not take it"
    assert shown(root) == ["60", "1"]
    assert read_journal(journal).open == ()


def test_a_file_that_is_not_there_is_seen_beforehand(state: HostState) -> None:
    with pytest.raises(SettingError) as caught:
        state.check({"/proc/sys/vm/nonesuch": "1"})
    assert str(caught.value) == (
        'this kernel has no "vm.nonesuch"\nDETAIL:  /proc/sys/vm/nonesuch does not exist'
    )


def test_what_somebody_else_has_changed_meanwhile_is_left_to_them(root: Path, state: HostState) -> None:
    with pytest.raises(StillChangedError) as caught, state.holding(WANTED):
        put(root, SWAPPINESS, "1")
    assert str(caught.value) == (
        "someone else changed the machine while it was measured\n"
        "DETAIL:  vm.swappiness is 1, requested was 10\n"
        "HINT:  pgdyno revert --host-only --drifted=overwrite restores the original values, "
        "--drifted=keep keeps the present ones"
    )
    assert shown(root) == ["1", "1"]


def test_what_does_not_come_back_is_said_with_the_line_that_mends_it(
    root: Path, state: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StillChangedError) as caught, state.holding(WANTED):
        let_kernel(monkeypatch, lambda _root, path, value: "0" if path == AUTOGROUP else value)
    assert str(caught.value) == (
        "kernel.sched_autogroup_enabled could not be restored; something is still changed\n"
        "DETAIL:  the original value was 1, the kernel shows 0\n"
        "HINT:  pgdyno revert --host-only; "
        "by hand, as root: echo 1 > /proc/sys/kernel/sched_autogroup_enabled"
    )
    assert shown(root) == ["60", "0"]


def test_ctrl_c_while_it_is_given_back_says_what_is_still_changed(
    root: Path, state: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_root: Path, _path: str, _value: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(StillChangedError) as caught, state.holding(WANTED):
        let_kernel(monkeypatch, interrupt)
    assert str(caught.value) == (
        "interrupted; something is still changed\n"
        "HINT:  pgdyno revert --host-only; by hand, as root: "
        "echo 1 > /proc/sys/kernel/sched_autogroup_enabled; echo 60 > /proc/sys/vm/swappiness"
    )


def test_a_killed_trial_is_undone_before_the_next_one(root: Path, state: HostState, journal: Path) -> None:
    with open_journal(journal) as opened:
        carry_out(root, opened, WANTED, "trial-1")  # which does not come to its end
    refusal = (
        "an earlier trial (trial-1) was interrupted on this machine\n"
        "DETAIL:  vm.swappiness may or may not be changed\n"
        "HINT:  pgdyno revert --host-only, then try again"
    )
    assert refused(state, RefusedError) == refusal
    with pytest.raises(RefusedError) as caught:
        state.check(WANTED)
    assert str(caught.value) == refusal
    assert revert_host(access_without_server(root, journal), RevertRequest()).is_complete
    assert shown(root) == ["60", "1"]
    with state.holding(WANTED):
        assert shown(root) == ["10", "0"]


def access_without_server(root: Path, journal: Path) -> ServerAccess:
    def nobody_answers() -> Connection:
        raise ConnectionFailedError("no server is asked")

    return ServerAccess(nobody_answers, journal, inspect_server, host_writers=host_writers(root))


def test_what_a_plan_has_changed_is_no_obstacle_and_comes_back(
    root: Path, state: HostState, journal: Path
) -> None:
    with open_journal(journal) as opened:
        carry_out(root, opened, {SWAPPINESS: "5"}, server=host_target())
    with state.holding(WANTED):
        assert shown(root) == ["10", "0"]
    assert shown(root) == ["5", "1"]
    assert [one.change.value for one in read_journal(journal).open] == ["5"]


def test_a_journal_that_somebody_holds_or_has_damaged_is_not_written_to(
    root: Path, state: HostState, journal: Path
) -> None:
    with open_journal(journal):
        assert refused(state, LockHeldError).startswith("another pgdyno process is making changes on this ")
        with pytest.raises(LockHeldError):
            state.check(WANTED)
    (journal / JOURNAL_FILE).write_text("half a line\n")
    assert refused(state, StorageError) == (
        "the journal is damaged, so no changes can be recorded in it\n"
        "DETAIL:  line 1 of the journal cannot be read\n"
        "HINT:  pgdyno revert --host-only --all restores the readable entries; then move the journal away"
    )
    assert shown(root) == ["60", "1"]


def test_arms_that_take_turns_have_their_own_values_in_turn(root: Path, state: HostState) -> None:
    with state.holding({SWAPPINESS: "10"}, {SWAPPINESS: "20"}, {}) as begin_turn:
        assert begin_turn is not None
        seen = []
        for arm in (1, 0, 2, 1):
            begin_turn(arm)
            seen.append(value_of(root, SWAPPINESS))
        assert seen == ["20", "10", "60", "20"]
    assert shown(root) == ["60", "1"]


def test_what_all_arms_want_alike_takes_no_turns(root: Path, state: HostState) -> None:
    with state.holding(WANTED, WANTED) as begin_turn:
        assert begin_turn is None
        assert shown(root) == ["10", "0"]


@pytest.mark.parametrize(
    ("arms", "pages"),
    [
        # 100 are somebody else's; the arms that want more take 50 and 30.
        (({POOL: "100"}, {POOL: "150"}, {POOL: "130"}), "180"),
        (({POOL: "150"}, {}), "150"),
        (({POOL: "160"}, {POOL: "140"}), "200"),
        (({POOL: "7"}, {POOL: "120"}), "120"),
        (({POOL: "7"},), "7"),
    ],
)
def test_a_pool_holds_the_pages_of_all_arms(
    root: Path, state: HostState, arms: tuple[dict[str, str], ...], pages: str
) -> None:
    with state.holding(*arms) as begin_turn:
        assert begin_turn is None
        assert value_of(root, POOL) == pages
    assert value_of(root, POOL) == "100"


def begin_turn_of(state: HostState, arm: int) -> None:
    with state.holding({SWAPPINESS: "10"}, {SWAPPINESS: "20"}) as begin_turn:
        assert begin_turn is not None
        begin_turn(arm)


def test_a_killed_turn_is_undone_whichever_it_was(root: Path, state: HostState, journal: Path) -> None:
    class KilledError(BaseException):
        """Ends the process, as far as what is restored is concerned."""

    def killed(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgdyno.apply.host_state._give_back", killed)
        with pytest.raises(KilledError):
            begin_turn_of(state, 1)
    assert value_of(root, SWAPPINESS) == "20"
    assert revert_host(access_without_server(root, journal), RevertRequest()).is_complete
    assert value_of(root, SWAPPINESS) == "60"


def test_a_value_that_the_kernel_makes_another_of_is_seen_before_the_first_turn(
    root: Path, state: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_kernel(monkeypatch, lambda _root, _path, value: "64" if value == "70" else value)
    with pytest.raises(SettingError) as caught, state.holding({SWAPPINESS: "10"}, {SWAPPINESS: "70"}):
        pytest.fail("the trial began")
    assert str(caught.value) == ('the kernel does not keep "70" for vm.swappiness\nDETAIL:  it shows 64')


def test_a_pool_is_a_number_of_pages(state: HostState) -> None:
    with pytest.raises(SettingError) as caught, state.holding({POOL: "many"}):
        pytest.fail("the trial began")
    assert str(caught.value) == f'"many" is not a number of huge pages\nDETAIL:  requested for {POOL}'


def test_what_the_kernel_keeps_free_for_huge_pages_comes_back_whichever_turn_was_the_last(
    root: Path, state: HostState, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, kept_free = "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/min_free_kbytes"
    put(root, policy, "madvise")
    put(root, kept_free, "65536")

    def react(machine: Path, path: str, value: str) -> str:
        if (path, value) == (policy, "always"):
            put(machine, kept_free, "67584")  # and nothing takes it back
        return value

    let_kernel(monkeypatch, react)
    with state.holding({policy: "always"}, {}) as begin_turn:
        assert begin_turn is not None
        begin_turn(1)
        assert (value_of(root, policy), value_of(root, kept_free)) == ("madvise", "67584")
    assert (value_of(root, policy), value_of(root, kept_free)) == ("madvise", "65536")


def test_a_trial_does_not_write_behind_who_sets_the_same_by_himself(root: Path, journal: Path) -> None:
    put(root, "/proc/41/cmdline", "/usr/bin/python3\0/usr/sbin/tuned\0")
    put(root, "/etc/tuned/active_profile", "postgresql")
    state = HostState(journal, host_writers(root), Tree(root))
    with pytest.raises(OwnershipError) as caught:
        state.check(WANTED)
    assert caught.value.message == (
        "TuneD is active with profile postgresql, and would restore its own values"
    )
    assert caught.value.detail == "requested: vm.swappiness, kernel.sched_autogroup_enabled"
