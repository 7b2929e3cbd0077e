"""Keeps idle CPUs awake while scratch servers are measured, alike in all arms.

Waking an idle CPU can take longer than the statement that it is woken for, most of all in a virtual machine:
the figures then tell how the hypervisor wakes CPUs. The machine is given back as it was found, with receipts,
by ``apply/host_state.py``. What does not make the probe's wake-up shorter is left alone, and not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pgdyno.apply.host_state import HostState
from pgdyno.base.errors import PgdynoError, RefusedError, StillChangedError, UsageError
from pgdyno.host.awake import HALT_POLLING, POLLING, Awake, AwakeMeans, idling_files
from pgdyno.host.kernel_file import display_name
from pgdyno.host.probing.spinners import Spin, Spinners, boot_line, polling_wanted, why_no_polling
from pgdyno.host.probing.wakeup import measure_wake_up
from pgdyno.model.plans.plan import Plan, Skipped
from pgdyno.model.variants.variant import Variant

SHORTER = 0.75
"""A wake-up has to come down to this share of what it took: arbitrary, above the probe's own spread."""
_PROBES = 3  # arbitrary: half a second
_POLLING_ALREADY = "CPUs poll already before they halt"
NOT_OURS = "nothing is changed for a server that pgdyno does not start"
Probe = Callable[[], float | None]
"""Measures a wake-up on an idle CPU, in µs; None where that is not possible."""


def probe_us() -> float | None:
    """Return the latency of waking an idle CPU, in µs: the least of several medians.

    Whatever else runs for a moment makes a median longer, by taking the CPU that should be idle.
    """
    medians = (measure_wake_up().idle_us.or_none() for _ in range(_PROBES))
    return min((median for median in medians if median is not None), default=None)


@dataclass(frozen=True)
class Keeping:
    """The means of keeping CPUs awake: a record, and kernel files or processes."""

    record: Awake
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    spin: Spin = nullcontext


@dataclass(frozen=True)
class AwakeKeeper:
    """Finds out how to keep a machine's CPUs awake, by trying."""

    host_state: HostState
    spinners: Spinners
    probe: Probe = probe_us

    def find(self, variants: Sequence[Variant], as_booted: str = "") -> Keeping:
        """Try the ways to keep CPUs awake, and return the one that works.

        The machine is then as it was.

        ``as_booted`` says why nothing is to be tried. What a killed measurement has left is restored first.
        Raises: StillChangedError if the machine could not be given back.
        """
        not_restored = self._restore_left()
        before = Awake(None, "", self.probe(), None, boot_line(self.host_state.tree))
        obstacle = as_booted or _chosen_by(variants) or not_restored
        if obstacle:
            return Keeping(replace(before, reason=obstacle))
        found = self._polling(before)
        if found.record.means is not None or found.record.reason == _POLLING_ALREADY:
            return found
        return self._spinning(before, found.record.reason)

    def again(self, stored: Awake | None, *, is_wanted: bool) -> Keeping:
        """Return how to go on with an interrupted experiment: as it was measured before.

        Raises: UsageError if it was measured in another way than is asked for, or than is possible now.
        """
        not_restored = self._restore_left()
        means = None if stored is None else stored.means
        record = stored or Awake(None)
        if means is None:
            return Keeping(record)
        if not is_wanted:
            raise UsageError(
                "the experiment was measured with CPUs kept awake",
                hint="leave out --as-booted",
            )
        is_polling = means is AwakeMeans.HALTPOLL
        obstacle = self._why_no_polling() if is_polling else self.spinners.why_not()
        if (reason := not_restored or obstacle) is not None:
            raise UsageError(
                "the experiment was measured with CPUs kept awake, which is not possible now",
                detail=reason,
                hint="repeat its command line without --resume",
            )
        if is_polling:
            return Keeping(record, polling_wanted(self.host_state.tree))
        return Keeping(record, spin=self.spinners.spin)

    def _polling(self, before: Awake) -> Keeping:
        if (reason := self._why_no_polling()) is not None:
            return Keeping(replace(before, reason=reason))
        files = polling_wanted(self.host_state.tree)
        if not files:
            return Keeping(replace(before, reason=_POLLING_ALREADY))
        trial = try_files(self.host_state, self.probe, before.booted_us, files)
        if trial.obstacle:
            return Keeping(replace(before, reason=trial.obstacle))
        return Keeping(replace(before, means=AwakeMeans.HALTPOLL, held_us=trial.held_us), files)

    def _spinning(self, before: Awake, why_no_polling: str) -> Keeping:
        obstacle = self.spinners.why_not()
        if obstacle is None:
            try:
                with self.spinners.spin():
                    held_us = self.probe()
            except PgdynoError as error:
                obstacle = error.message
            else:
                if is_shorter(before.booted_us, held_us):
                    record = replace(before, means=AwakeMeans.SPINNERS, held_us=held_us)
                    return Keeping(record, spin=self.spinners.spin)
                obstacle = f"spinning does not shorten a wake-up ({_while_held(held_us)})"
        return Keeping(replace(before, reason=f"{why_no_polling}; {obstacle}"))

    def _restore_left(self) -> str | None:
        """Restore the files left by a killed measurement.

        Return the reason if that is not possible.
        """
        try:
            self.host_state.restore_left(POLLING)
        except PgdynoError as error:
            return error.message
        return None

    def _why_no_polling(self) -> str | None:
        tree = self.host_state.tree
        if (reason := why_no_polling(tree)) is not None:
            return reason
        try:
            self.host_state.check(polling_wanted(tree))
        except PgdynoError as error:
            return error.message
        return None


@dataclass(frozen=True)
class Trial:
    """Wake-up latencies without and with kernel files set.

    ``obstacle``: why the files are not worth setting, if so.
    """

    booted_us: float | None
    held_us: float | None
    obstacle: str = ""


def try_files(
    host_state: HostState, probe: Probe, booted_us: float | None, files: Mapping[str, str]
) -> Trial:
    """Let the kernel's files hold these values for the time of a probe.

    Raises: StillChangedError if the machine could not be given back.
    """
    try:
        with host_state.holding(files):
            held_us = probe()
    except StillChangedError:
        raise
    except PgdynoError as error:  # what the kernel does not take has been given back
        return Trial(booted_us, None, error.message)
    if is_shorter(booted_us, held_us):
        return Trial(booted_us, held_us)
    return Trial(booted_us, held_us, f"polling does not shorten a wake-up ({_while_held(held_us)})")


def is_shorter(booted_us: float | None, held_us: float | None) -> bool:
    """Whether a wake-up takes clearly less than before."""
    return booted_us is not None and held_us is not None and held_us <= SHORTER * booted_us


def as_booted_beside(host_state: HostState, *, is_here: bool, probe: Probe = probe_us) -> Awake:
    """Return the record for a server that is not pgdyno's: its machine's, if that is this one."""
    if not is_here:
        return Awake(None, NOT_OURS)
    return Awake(None, NOT_OURS, probe(), None, boot_line(host_state.tree))


def _chosen_by(variants: Sequence[Variant]) -> str | None:
    """Say that variants choose themselves how CPUs idle; None if none does."""
    files = dict.fromkeys(path for variant in variants for path in idling_files(variant.files))
    if not files:
        return None
    return f"the variants set {', '.join(map(display_name, files))} themselves"


def _while_held(time_us: float | None) -> str:
    return "not measured" if time_us is None else f"{time_us:.0f} µs while it is held"


def with_proven_polling(plan: Plan, host_state: HostState, probe: Probe = probe_us) -> Plan:
    """Try the plan's polling for a moment, and return the plan with the times, or without the polling.

    The machine is then as it was. Raises: StillChangedError if it could not be given back.
    """
    lines = [line for line in plan.lines if line.change.lever == HALT_POLLING]
    if not lines:
        return plan
    trial = try_files(host_state, probe, probe(), {line.change.key: line.change.value for line in lines})
    if trial.obstacle:
        rest = tuple(line for line in plan.lines if line not in lines)
        skipped = Skipped(HALT_POLLING, f"left alone: {trial.obstacle}")
        return replace(plan, lines=rest, skipped=(*plan.skipped, skipped))
    times = f"tried: {trial.held_us:.1f} µs instead of {trial.booted_us:.1f} µs"
    return replace(
        plan,
        lines=tuple(
            replace(line, reason=f"{line.reason}; {times}") if line in lines else line for line in plan.lines
        ),
    )


@contextmanager
def staying_awake(spinners: Spinners, probe: Probe = probe_us) -> Iterator[Awake]:
    """Keep these CPUs awake within a context.

    Yields the latency of a wake-up, before and now.

    Raises: RefusedError where it would cost somebody else, or does not shorten a wake-up; PrivilegeError.
    """
    if (reason := spinners.why_not()) is not None:
        raise RefusedError("CPUs are not kept awake here", detail=reason)
    booted_us = probe()
    with spinners.spin():
        held_us = probe()
        if not is_shorter(booted_us, held_us):
            raise RefusedError(
                "keeping CPUs busy does not shorten a wake-up here",
                detail=f"it takes {_microseconds(held_us)}, and {_microseconds(booted_us)} without",
                hint="in a guest of KVM the lever halt_polling may: pgdyno advise --layers system",
            )
        yield Awake(AwakeMeans.SPINNERS, "", booted_us, held_us)


def _microseconds(time_us: float | None) -> str:
    return "an unknown time" if time_us is None else f"{time_us:.1f} µs"
