"""Keep idle CPUs awake while scratch servers are measured, in all arms alike.

Waking an idle CPU can take longer than the statement it is woken for, most of all in a virtual machine: the
figures then describe how the hypervisor wakes CPUs. ``apply/host_state.py`` restores the machine, with
receipts. A method that does not shorten the probe's wake-up is not used, and the record does not claim it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pgdyno.apply.host_state import HostState
from pgdyno.base.errors import PgdynoError, RefusedError, StillChangedError, UsageError
from pgdyno.host.cpu_idling import HALT_POLLING, POLLING, Awake, AwakeMeans, idling_files
from pgdyno.host.kernel_file import display_name
from pgdyno.host.probing.run_probes import measure_wake_up
from pgdyno.host.probing.spinners import Spin, Spinners, boot_line, polling_wanted, why_no_polling
from pgdyno.model.plans.plan import Plan, Skipped
from pgdyno.model.variants.variant import Variant

SHORTER = 0.75
"""A wake-up at or below this share of its time before is shorter: arbitrary, above the probe's spread."""
_PROBES = 3  # arbitrary: half a second
_POLLING_ALREADY = "CPUs already poll before they halt"
NOT_OURS = "while measuring, pgdyno changes the host only for servers that it starts"
Probe = Callable[[], float | None]
"""Measures the wake-up latency of an idle CPU, in µs; None where that is not possible."""


def probe_us() -> float | None:
    """Return the latency of waking an idle CPU, in µs: the least of several medians.

    Another process that runs for a moment occupies the idle CPU and makes a median longer.
    """
    medians = (measure_wake_up().idle_us.or_none() for _ in range(_PROBES))
    return min((median for median in medians if median is not None), default=None)


@dataclass(frozen=True)
class Keeping:
    """A method of keeping CPUs awake: its record, and the kernel files to set or the processes to run."""

    record: Awake
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    spin: Spin = nullcontext


@dataclass(frozen=True)
class AwakeKeeper:
    """Finds a method that keeps a machine's CPUs awake, by trial."""

    host_state: HostState
    spinners: Spinners
    probe: Probe = probe_us

    def find(self, variants: Sequence[Variant], as_booted: str = "") -> Keeping:
        """Try the methods that keep CPUs awake and return the one that works; the machine is restored.

        ``as_booted`` is a reason not to try any. Changes left by a killed measurement are restored first.
        Raises: StillChangedError if the machine could not be restored.
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
        """Return the method for resuming an interrupted experiment: the one it was measured with.

        Raises: UsageError if that method is not the requested one, or not possible now.
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
                "the experiment was measured with CPUs kept awake, but that is not possible now",
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
        """Restore kernel files left changed by a killed measurement; return why not, if that fails."""
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

    ``obstacle`` is the reason not to set the files; empty if they help.
    """

    booted_us: float | None
    held_us: float | None
    obstacle: str = ""


def try_files(
    host_state: HostState, probe: Probe, booted_us: float | None, files: Mapping[str, str]
) -> Trial:
    """Set kernel files for the duration of one probe.

    Raises: StillChangedError if the machine could not be restored.
    """
    try:
        with host_state.holding(files):
            held_us = probe()
    except StillChangedError:
        raise
    except PgdynoError as error:  # a value that the kernel rejects has been restored
        return Trial(booted_us, None, error.message)
    if is_shorter(booted_us, held_us):
        return Trial(booted_us, held_us)
    return Trial(booted_us, held_us, f"polling does not shorten a wake-up ({_while_held(held_us)})")


def is_shorter(booted_us: float | None, held_us: float | None) -> bool:
    """Whether a wake-up takes clearly less time than before."""
    return booted_us is not None and held_us is not None and held_us <= SHORTER * booted_us


def awake_record_of_attached(host_state: HostState, *, is_here: bool, probe: Probe = probe_us) -> Awake:
    """Return the record for a server that pgdyno did not start; with a probe if it runs on this host."""
    if not is_here:
        return Awake(None, NOT_OURS)
    return Awake(None, NOT_OURS, probe(), None, boot_line(host_state.tree))


def _chosen_by(variants: Sequence[Variant]) -> str | None:
    """Return a message if variants themselves set how CPUs idle; None if none does."""
    files = dict.fromkeys(path for variant in variants for path in idling_files(variant.files))
    if not files:
        return None
    return f"the variants set {', '.join(map(display_name, files))} themselves"


def _while_held(time_us: float | None) -> str:
    return "not measured" if time_us is None else f"{time_us:.0f} µs while active"


def with_proven_polling(plan: Plan, host_state: HostState, probe: Probe = probe_us) -> Plan:
    """Try the plan's halt polling briefly; return the plan with the measured times, or without the polling.

    The machine is restored afterwards. Raises: StillChangedError if it could not be restored.
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

    Yields the wake-up latency before and now.

    Raises: RefusedError if it would take CPU time from others, or does not shorten a wake-up; PrivilegeError.
    """
    if (reason := spinners.why_not()) is not None:
        raise RefusedError("CPUs are not kept awake here", detail=reason)
    booted_us = probe()
    with spinners.spin():
        held_us = probe()
        if not is_shorter(booted_us, held_us):
            raise RefusedError(
                "keeping CPUs busy does not shorten a wake-up here",
                detail=f"a wake-up takes {_microseconds(held_us)} with it, and "
                f"{_microseconds(booted_us)} without",
                hint="in a KVM guest, the lever halt_polling may: pgdyno advise --layers system",
            )
        yield Awake(AwakeMeans.SPINNERS, "", booted_us, held_us)


def _microseconds(time_us: float | None) -> str:
    return "an unknown time" if time_us is None else f"{time_us:.1f} µs"
