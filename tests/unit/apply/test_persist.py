"""Which files make changes of a machine last, on a directory that looks like one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.apply.machines import BOOT, SWAPPINESS, carry_out, change, make_machine, put
from tests.unit.apply.receipts import TARGET

from pgdyno.apply.ledger.log import Journal, open_journal
from pgdyno.apply.persist import Persisted, Persisting
from pgdyno.apply.runs.changes import new_apply_id, prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers
from pgdyno.apply.session.access import no_steps
from pgdyno.base.errors import OwnershipError
from pgdyno.host.files.tree import Tree
from pgdyno.model.plans.plan import PERSISTED_FILE, Change, Effect

SYSCTLS, RULES = "/etc/sysctl.d/60-pgdyno.conf", "/etc/udev/rules.d/60-pgdyno.rules"
TMPFILES = "/etc/tmpfiles.d/60-pgdyno.conf"
DIRTY, POLICY = "/proc/sys/vm/dirty_bytes", "/sys/kernel/mm/transparent_hugepage/enabled"
READ_AHEAD, RPS = "/sys/block/vda/queue/read_ahead_kb", "/sys/class/net/eth0/queues/rx-0/rps_cpus"
SMALL, LARGE = (f"/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages" for kb in (2048, 1048576))
SLICE = "/sys/kernel/debug/sched/base_slice_ns"
HEAD = (
    "# Written by pgdyno apply --persist: sets these values whenever this machine starts.\n"
    "# To remove it: pgdyno revert, which undoes everything that was applied together with it.\n"
    "# pgdyno status shows when it was applied, and by whom.\n\n"
)

MORE = {DIRTY: "0", "/proc/sys/vm/dirty_ratio": "20", "/proc/meminfo": "Hugepagesize:       2048 kB"}


@dataclass(frozen=True)
class Machine:
    """A machine that systemd starts, and the journal of what was done to it."""

    root: Path
    journal: Journal

    def persist(self, *planned: Change) -> Persisted:
        """Return the files that would make planned and earlier changes last."""
        writers = host_writers(self.root)
        return Persisting(Tree(self.root), writers, self.journal.read(), TARGET).files(planned)

    def texts(self, *planned: Change) -> dict[str, str]:
        """Return those files by path."""
        return {one.key: one.value for one in self.persist(*planned).changes}

    def apply(self, *changes: Change) -> None:
        """Make changes with receipts, for the server."""
        writers = host_writers(self.root)
        receipts = receipts_for(new_apply_id(), host_target(), prepare(changes, writers), TARGET)
        write_receipts(self.journal, receipts, no_steps)
        HostRun(self.journal, writers).carry_out(receipts)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    root = make_machine(tmp_path / "machine", MORE)
    for directory in ("run/systemd/system", "run/udev"):
        (root / directory).mkdir(parents=True)
    with open_journal(tmp_path / "journal") as journal:
        yield Machine(root, journal)


def planned(path: str, found: str, value: str) -> Change:
    return Change("a_lever", change(path, value).kind, path, found, value, Effect.IMMEDIATE)


def test_each_value_goes_to_the_place_that_sets_it_at_the_start(machine: Machine) -> None:
    changes = (
        planned(SWAPPINESS, "60", "10"),
        planned(POLICY, "always", "madvise"),
        planned(READ_AHEAD, "8192", "128"),
        planned(RPS, "0", "3"),
        planned(DIRTY, "0", "536870912"),
    )
    assert machine.texts(*changes) == {
        SYSCTLS: HEAD
        + "# vm.swappiness: 60 → 10, by lever a_lever\nvm.swappiness = 10\n\n"
        + "# vm.dirty_bytes: 0 → 536870912, by lever a_lever\nvm.dirty_bytes = 536870912\n",
        RULES: HEAD
        + f"# {READ_AHEAD}: 8192 → 128, by lever a_lever\n"
        + 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="vda", ATTR{queue/read_ahead_kb}="128"\n\n'
        + f"# {RPS}: 0 → 3, by lever a_lever\n"
        + 'ACTION=="add|change|move", SUBSYSTEM=="net", KERNEL=="eth0", ATTR{queues/rx-0/rps_cpus}="3"\n',
        TMPFILES: HEAD + f"# {POLICY}: always → madvise, by lever a_lever\nw {POLICY} - - - - madvise\n",
    }


def test_the_files_are_changes_without_a_former_value(machine: Machine) -> None:
    (one,) = machine.persist(planned(SWAPPINESS, "60", "10")).changes
    assert (one.kind, one.key, one.effect) == (PERSISTED_FILE, SYSCTLS, Effect.IMMEDIATE)


def test_the_pool_of_the_default_size_is_a_sysctl_and_any_other_is_not(machine: Machine) -> None:
    persisted = machine.persist(planned(SMALL, "0", "3224"), planned(LARGE, "0", "4"))
    texts = {one.key: one.value.removeprefix(HEAD) for one in persisted.changes}
    assert texts == {
        SYSCTLS: "# vm.nr_hugepages: 0 → 3224, by lever a_lever\nvm.nr_hugepages = 3224\n",
        TMPFILES: f"# {LARGE}: 0 → 4, by lever a_lever\nw {LARGE} - - - - 4\n",
    }
    while_free = "huge pages are reserved at boot, before memory is fragmented"
    assert set(persisted.notes) == {f"{while_free}: revert them before reducing the machine's memory"}


def test_what_an_earlier_apply_has_changed_is_persisted_without_a_change(machine: Machine) -> None:
    machine.apply(planned(SWAPPINESS, "60", "10"))
    assert machine.texts()[SYSCTLS] == (
        f"{HEAD}# vm.swappiness: 60 → 10, by lever a_lever\nvm.swappiness = 10\n"
    )


def test_what_is_not_in_force_any_more_is_not_persisted(machine: Machine) -> None:
    machine.apply(planned(SWAPPINESS, "60", "10"))
    put(machine.root, SWAPPINESS, "30")
    assert machine.persist() == Persisted(
        (),
        ("nothing to persist: neither this plan nor an earlier apply in force changes the machine",),
    )


def test_what_a_machine_has_forgotten_is_not_persisted_because_it_happens_to_be_so(machine: Machine) -> None:
    machine.apply(planned(SWAPPINESS, "60", "10"))
    put(machine.root, BOOT, "second")
    assert machine.texts() == {}


def test_what_a_trial_holds_is_not_persisted(machine: Machine) -> None:
    carry_out(machine.root, machine.journal, {SWAPPINESS: "10"}, "trial-1")
    assert machine.texts() == {}


def test_what_is_persisted_already_is_not_written_again(machine: Machine) -> None:
    machine.apply(planned(SWAPPINESS, "60", "10"))
    machine.apply(*machine.persist().changes)
    assert machine.persist() == Persisted()


def test_values_of_an_earlier_apply_stay_after_a_restart(machine: Machine) -> None:
    """The machine has them from the file, and its receipts for the running kernel are gone."""
    machine.apply(planned(SWAPPINESS, "60", "10"), planned(DIRTY, "0", "1048576"))
    machine.apply(*machine.persist().changes)
    put(machine.root, BOOT, "second")
    assert machine.texts(planned(SWAPPINESS, "10", "1")) == {
        SYSCTLS: HEAD
        + "# vm.swappiness: 10 → 1, by lever a_lever\nvm.swappiness = 1\n\n"
        + "# vm.dirty_bytes: 0 → 1048576, by lever a_lever\nvm.dirty_bytes = 1048576\n"
    }


def test_a_value_takes_the_place_of_the_former_one(machine: Machine) -> None:
    machine.apply(
        *machine.persist(planned(READ_AHEAD, "8192", "128"), planned(POLICY, "always", "madvise")).changes
    )
    rule = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="vda", ATTR{queue/read_ahead_kb}="64"'
    assert machine.texts(planned(READ_AHEAD, "128", "64"), planned(POLICY, "madvise", "never")) == {
        RULES: f"{HEAD}# {READ_AHEAD}: 128 → 64, by lever a_lever\n{rule}\n",
        TMPFILES: f"{HEAD}# {POLICY}: madvise → never, by lever a_lever\nw {POLICY} - - - - never\n",
    }


def test_a_file_of_somebody_else_is_not_written_over(machine: Machine) -> None:
    put(machine.root, SYSCTLS, "vm.swappiness = 30")
    with pytest.raises(OwnershipError) as caught:
        machine.persist(planned(SWAPPINESS, "60", "10"))
    assert str(caught.value) == (
        "/etc/sysctl.d/60-pgdyno.conf already exists, and pgdyno did not write it\n"
        "DETAIL:  the journal has no receipt for it\n"
        "HINT:  move it away, or omit --persist"
    )


def test_an_edit_of_somebody_else_is_not_written_over(machine: Machine) -> None:
    machine.apply(*machine.persist(planned(SWAPPINESS, "60", "10")).changes)
    put(machine.root, SYSCTLS, "vm.swappiness = 30")
    with pytest.raises(OwnershipError) as caught:
        machine.persist(planned(SWAPPINESS, "60", "5"))
    assert str(caught.value) == (
        "someone else has edited /etc/sysctl.d/60-pgdyno.conf since pgdyno wrote it\n"
        "HINT:  remove it with pgdyno revert --drifted=overwrite, or omit --persist"
    )


def test_what_no_file_can_set_is_named(machine: Machine) -> None:
    register, interrupt = "/dev/cpu/3/msr:0x1a4", "/proc/irq/41/smp_affinity_list"
    persisted = machine.persist(planned(register, "0x0", "0xf"), planned(interrupt, "0-3", "0"))
    at_boot = "it belongs in a script at boot"
    assert persisted.changes == ()
    assert persisted.notes == (
        f"not persisted: {register}: {at_boot} (wrmsr is in msr-tools)",
        f"not persisted: {interrupt}: {at_boot} that looks up the interrupt's current number",
    )


def test_a_machine_without_systemd_persists_what_it_can(machine: Machine) -> None:
    (machine.root / "run/systemd/system").rmdir()
    (machine.root / "run/udev").rmdir()
    put(machine.root, "/usr/sbin/sysctl", "a program")
    persisted = machine.persist(
        planned(SWAPPINESS, "60", "10"),
        planned(POLICY, "always", "never"),
        planned(READ_AHEAD, "8192", "128"),
    )
    assert [one.key for one in persisted.changes] == [SYSCTLS]
    assert persisted.notes == (
        f"not persisted: {READ_AHEAD}: udev is not running",
        f"not persisted: {POLICY}: systemd, which reads tmpfiles.d, is not running",
    )


def test_what_may_keep_a_value_from_being_in_force_is_said(machine: Machine) -> None:
    put(machine.root, "/etc/sysctl.d/99-theirs.conf", "vm.swappiness = 60\nvm.dirty_ratio = 20")
    persisted = machine.persist(
        planned(SWAPPINESS, "60", "10"),
        planned(DIRTY, "0", "1048576"),
        planned(READ_AHEAD, "8192", "128"),
        planned(SLICE, "1400000", "3000000"),
    )
    theirs = "/etc/sysctl.d/99-theirs.conf"
    assert persisted.notes == (
        f"{theirs} sets vm.swappiness after {SYSCTLS}, and overrides it at boot",
        f"{theirs} sets vm.dirty_ratio after {SYSCTLS}, and overrides it at boot",
        f"{RULES} identifies disks by name (vda): make sure the names are stable",
        f"{SLICE}: set at boot only if debugfs is mounted before systemd-tmpfiles runs",
    )
