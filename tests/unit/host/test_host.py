"""Other programs that set values of the kernel."""

from __future__ import annotations

from pgdyno.host.host import Owner


def test_an_owner_sets_the_files_of_its_patterns_and_says_what_it_would_do() -> None:
    owner = Owner("tuned", "is active with profile balanced", ("/proc/sys/vm/*", "/sys/x"), "tuned-adm off")
    assert owner.sets("/proc/sys/vm/swappiness")
    assert owner.sets("/sys/x")
    assert not owner.sets("/proc/sys/kernel/shmmax")
    assert owner.warning == "tuned is active with profile balanced, and would restore its own values"
