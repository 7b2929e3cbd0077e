"""Which of the kernel's files a study may set."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.unit.apply.machines import carry_out, make_machine, value_of

from pgdyno.apply.allowed_files import allowed_file, is_levers, require_allowed_files
from pgdyno.apply.ledger.log import open_journal
from pgdyno.base.errors import PermissionNotGivenError, RefusedError, UsageError
from pgdyno.cli.output import Lines
from pgdyno.measure.conditions import Conditions
from pgdyno.measure.measure import measure
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.variants.variant import Variant
from pgdyno.plan import levers
from pgdyno.store.experiment_file import read_experiment_file

RESULTS = Path(__file__).parents[3] / "docs/results"
OVERCOMMIT = "/proc/sys/vm/overcommit_memory"
RUNS = "the kernel runs the named program as root"
STOPS = "it can stop or restart the machine"
APART = "it isolates users of the machine from each other"
NETWORK = "it controls which network traffic the machine accepts or forwards"
DEVICE = "it adds, removes or resets a device or memory"
FIRMWARE = "it affects the firmware"
DEVELOPERS = "it is an interface for kernel and driver developers, without guarantees"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.toml")), ids=lambda file: file.name)
def test_the_experiments_of_the_documentation_need_no_permission(file: Path) -> None:
    with does_not_raise():
        require_allowed_files(read_experiment_file(file).variants, ())


def test_whatever_a_lever_may_plan_needs_no_permission() -> None:
    patterns = [file for module in levers.load().values() for file in module.LEVER.files]
    paths = [pattern.replace("*", "x0") for pattern in patterns]
    assert len(paths) > 25
    assert [path for path in paths if not is_levers(path)] == []


@pytest.mark.parametrize(
    "path",
    [
        "vm.dirty_ratio",  # the other way to say vm.dirty_bytes
        "vm.dirty_background_ratio",
        "vm.nr_hugepages",
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "/sys/kernel/debug/sched/base_slice_ns",
        "/dev/cpu/0/msr:0x1a4",
        "/proc/irq/24/smp_affinity_list",  # as the levers' reports say
        "/sys/class/net/eth0/napi_defer_hard_irqs",
    ],
)
def test_what_belongs_to_levers_and_studies_needs_none(path: str) -> None:
    with does_not_raise():
        require_allowed_files([Variant("good", {path: "1"})], ())


def test_another_file_has_to_be_allowed_by_its_name() -> None:
    variant = Variant("strict", {"vm.overcommit_memory": "2"})
    with pytest.raises(PermissionNotGivenError) as caught:
        require_allowed_files([variant], {"/proc/sys/vm/overcommit_ratio"})
    assert str(caught.value) == (
        'variant "strict" sets vm.overcommit_memory, which was not allowed\n'
        "DETAIL:  no lever of pgdyno sets it: its effect on this machine is untested\n"
        "HINT:  if you know its effect, add --allow-file vm.overcommit_memory"
    )
    assert caught.value.exit_code == 4
    for text in ("vm.overcommit_memory", OVERCOMMIT):
        require_allowed_files([variant], {allowed_file(text)})


def test_a_name_with_a_dot_in_it_is_said_as_a_path() -> None:
    with pytest.raises(PermissionNotGivenError) as caught:
        require_allowed_files([Variant("a", {"/proc/sys/net/ipv4/neigh/eth0.7/gc_stale_time": "9"})], ())
    assert caught.value.hint == (
        "if you know its effect, add --allow-file /proc/sys/net/ipv4/neigh/eth0.7/gc_stale_time"
    )


def test_what_is_no_file_of_the_kernel_cannot_be_allowed() -> None:
    with pytest.raises(UsageError) as caught:
        allowed_file("/etc/cron.d/backup")
    assert str(caught.value) == (
        '--allow-file "/etc/cron.d/backup" is not a kernel file\n'
        "HINT:  name a sysctl (vm.overcommit_memory), or a file below /proc/sys, /proc/irq or /sys"
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("kernel.core_pattern", RUNS), ("kernel.modprobe", RUNS), ("kernel.hotplug", RUNS),
        ("kernel.poweroff_cmd", RUNS), ("kernel.usermodehelper.bset", RUNS),
        ("fs.binfmt_misc.register", RUNS),
        ("/sys/kernel/uevent_helper", RUNS),
        ("kernel.sysrq", STOPS), ("kernel.panic", STOPS), ("kernel.panic_on_oops", STOPS),
        ("kernel.hung_task_panic", STOPS), ("vm.panic_on_oom", STOPS), ("/sys/power/state", STOPS),
        ("fs.protected_symlinks", APART), ("fs.suid_dumpable", APART), ("kernel.yama.ptrace_scope", APART),
        ("kernel.kptr_restrict", APART), ("kernel.unprivileged_bpf_disabled", APART),
        ("vm.mmap_min_addr", APART), ("kernel.randomize_va_space", APART),
        ("/sys/kernel/security/lockdown", APART),
        ("net.ipv4.ip_forward", NETWORK), ("net.ipv4.conf.all.rp_filter", NETWORK),
        ("net.ipv6.conf.all.forwarding", NETWORK),
        ("/sys/bus/pci/drivers/nvme/unbind", DEVICE), ("/sys/bus/pci/drivers/nvme/new_id", DEVICE),
        ("/sys/bus/pci/rescan", DEVICE), ("/sys/block/sda/device/delete", DEVICE),
        ("/sys/devices/pci0000:00/0000:00:02.0/reset", DEVICE),
        ("/sys/firmware/efi/vars/x", FIRMWARE),
        ("/sys/kernel/debug/provoke-crash/DIRECT", DEVELOPERS),
        ("/sys/module/zfs/parameters/zfs_nocacheflush", DEVELOPERS),
        ("/sys/bus/pci/drivers/nvme/module/parameters/poll_queues", DEVELOPERS),
    ],
)  # fmt: skip
def test_what_could_harm_the_machine_is_refused_whoever_allows_it(name: str, reason: str) -> None:
    variant = Variant("evil", {name: "1"})
    with pytest.raises(RefusedError) as caught:
        require_allowed_files([variant], {*variant.files})
    assert type(caught.value) is RefusedError
    assert str(caught.value) == (f'variant "evil" may not set {name}\nDETAIL:  {reason}\nHINT:  omit it')


def test_a_link_to_such_a_file_is_no_way_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgdyno.apply.allowed_files.realpath", lambda _: "/sys/power/state")
    with pytest.raises(RefusedError, match='variant "evil" may not set /sys/class/sleep/now'):
        require_allowed_files([Variant("evil", {"/sys/class/sleep/now": "mem"})], {"/sys/class/sleep/now"})


def test_every_study_is_asked_before_anything_runs() -> None:
    variants = (Variant("default"), Variant("strict", {OVERCOMMIT: "2"}))
    study = Study("any", "Which?", variants, ("pgbench-select",))
    with pytest.raises(PermissionNotGivenError, match="which was not allowed"):
        measure(study, Conditions(None, {}, Design()), Lines())


@pytest.mark.usefixtures("home")
def test_the_option_is_the_commands() -> None:
    of_default = ("default", "strict:vm.overcommit_memory=2", "--workload", "pgbench-select", "--embedded")
    done = pgdyno("compare", *of_default)
    assert done.returncode == 4
    assert "if you know its effect, add --allow-file vm.overcommit_memory" in done.stderr
    done = pgdyno("compare", *of_default, "--allow-file", "/etc/passwd")
    assert done.returncode == 2
    assert '--allow-file "/etc/passwd" is not a kernel file' in done.stderr


def test_what_an_earlier_version_has_changed_comes_back_all_the_same(tmp_path: Path) -> None:
    """A receipt was written before the change: nobody asks again whether the file was a good idea."""
    root = make_machine(tmp_path / "machine", {"/proc/sys/kernel/sysrq": "176", OVERCOMMIT: "0"})
    with open_journal(tmp_path / "journal") as journal:
        run, receipts = carry_out(root, journal, {"/proc/sys/kernel/sysrq": "1", OVERCOMMIT: "2"})
        assert run.undo(receipts).drifted == ()
    assert (value_of(root, "/proc/sys/kernel/sysrq"), value_of(root, OVERCOMMIT)) == ("176", "0")
