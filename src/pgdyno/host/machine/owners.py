"""Programs that set values of the running kernel on their own.

They overwrite values that other programs write; a plan may have been made before they ran.

Sources: TuneD, tuned/consts.py (ACTIVE_PROFILE_FILE), tuned-adm(8): without a profile it sets nothing; TLP,
tlp-func-base (PWRRUNFILE): it is not a daemon, and stores there which values it set last; irqbalance(1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base.errors import OwnershipError
from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.host import Owner
from pgdyno.host.kernel_file import display_name
from pgdyno.host.processes.processes import process_ids

_ACTIVE_PROFILE = "/etc/tuned/active_profile"
_TLP_HAS_SET = "/run/tlp/last_pwr"
_EVERYTHING = ("*",)  # a profile's values are spread over several files that include each other
_FREQUENCIES = tuple(
    f"/sys/devices/system/cpu/cpufreq/*/{name}"
    for name in ("scaling_governor", "energy_performance_preference")
)
_DAEMONS = {
    "power-profiles-daemon": _FREQUENCIES,
    "auto-cpufreq": _FREQUENCIES,
    "irqbalance": ("/proc/irq/*",),
}
_PYTHON = "python"


def find_owners(tree: Tree) -> Fact[tuple[Owner, ...]]:
    """Return the programs that now set values of this machine's kernel, each with its files."""
    pids = process_ids(tree)
    return parsed(pids, lambda found: tuple(_owners(tree, _programs(tree, found))))


def _owners(tree: Tree, programs: set[str]) -> Iterator[Owner]:
    profile = tree.text(_ACTIVE_PROFILE).or_none()
    if "tuned" in programs and profile is not None:
        yield Owner(
            "TuneD",
            f"is active with profile {profile}",
            _EVERYTHING,
            "pgdyno advise --layers all --format tuned writes a profile for it; or stop it: tuned-adm off",
        )
    if tree.text(_TLP_HAS_SET).is_known:
        yield Owner("TLP", "is active", _FREQUENCIES, "switch it off: TLP_ENABLE=0 in /etc/tlp.conf")
    for program in sorted(programs & _DAEMONS.keys()):
        yield Owner(program, "runs", _DAEMONS[program], f"stop it: systemctl stop {program}")


def _programs(tree: Tree, pids: tuple[int, ...]) -> set[str]:
    """Return the names of the running programs; for Python scripts, the script's name."""
    lines = (tree.text(f"/proc/{pid}/cmdline").or_else("") for pid in pids)
    return {_program(line.split("\0")) for line in lines}


def _program(words: list[str]) -> str:
    name = words[0].rpartition("/")[2]
    if not name.startswith(_PYTHON):
        return name
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return script.rpartition("/")[2]


def check_owners(tree: Tree, files: Sequence[str]) -> None:
    """Refuse changes of files that another program would overwrite. Raises: OwnershipError."""
    if not files:
        return
    for owner in find_owners(tree).or_else(()):
        mine = [display_name(file) for file in files if owner.sets(file)]
        if mine:
            raise OwnershipError(owner.warning, detail=f"requested: {', '.join(mine)}", hint=owner.instead)
