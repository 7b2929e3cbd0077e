"""A server's configuration is restored, also while another pgdyno holds the journal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.fix_debian import DebianCluster

from pgdyno.apply.ledger.log import open_journal
from pgdyno.base.errors import LockHeldError, StillChangedError
from pgdyno.builds.switching.server_access import server_access
from pgdyno.builds.switching.variant_switch import Switch
from pgdyno.model.plans.plan import SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.variants.variant import Variant

pytestmark = [pytest.mark.server, pytest.mark.debian, pytest.mark.usefixtures("home")]

DELAY = "commit_delay"
FOUND = Variant("as-found")
TRIED = replace(FOUND, name="candidate", settings={DELAY: "100"})


def switch_on(cluster: DebianCluster, lock_wait_s: float) -> Switch:
    change = Change("commit_delay", SETTING, DELAY, "0", "0", Effect.RELOAD)
    plan = Plan((PlanLine(change, Layer.APPLICATION, "", "", Risk.SAFE, ""),), (), (), None)
    access = server_access(cluster.dsn)
    return Switch(access, FOUND, plan, allow_restart=False, lock_wait_s=lock_wait_s)


def test_while_the_journal_is_held_the_error_says_that_a_value_is_still_there(
    debian15: DebianCluster,
) -> None:
    switch = switch_on(debian15, lock_wait_s=0.1)
    switch.to(TRIED)
    with open_journal(switch.access.journal_directory), pytest.raises(StillChangedError) as caught:
        switch.back()
    assert caught.value.exit_code == 3
    assert caught.value.message == (
        "another pgdyno process is making changes on this host; the temporary configuration is still in force"
    )
    assert caught.value.hint == f"when the other pgdyno has ended: {switch.access.revert_command}"
    assert debian15.execute("SHOW commit_delay") == [("100",)]
    switch.back()
    assert debian15.execute("SHOW commit_delay") == [("0",)]


def test_a_journal_that_another_one_lets_go_is_waited_for(debian15: DebianCluster) -> None:
    switch = switch_on(debian15, lock_wait_s=30.0)
    switch.to(TRIED)
    with ThreadPoolExecutor(1) as pool:
        with open_journal(switch.access.journal_directory):
            restored = pool.submit(switch.back)
            with pytest.raises(TimeoutError):
                restored.result(0.5)
            assert debian15.execute("SHOW commit_delay") == [("100",)]
        restored.result(30.0)
    assert debian15.execute("SHOW commit_delay") == [("0",)]


def test_an_apply_that_never_began_leaves_nothing_to_tell(debian15: DebianCluster) -> None:
    switch = switch_on(debian15, lock_wait_s=0.1)
    with open_journal(switch.access.journal_directory):
        with pytest.raises(LockHeldError):
            switch.to(TRIED)
        with pytest.raises(LockHeldError):
            switch.back()
    switch.back()
    assert debian15.execute("SHOW commit_delay") == [("0",)]
