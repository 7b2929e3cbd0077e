"""Command lines of child processes that end when the process that starts them ends, for whatever reason.

The kernel sends a child a signal then (PR_SET_PDEATHSIG in prctl(2)), but not if the child changes its
credentials after it has asked for the signal, nor if its parent has ended before. So setpriv changes the
credentials first and asks last, and a shell then compares the child's parent with the expected one: if it is
another one, the program is not executed.
"""

from __future__ import annotations

from collections.abc import Sequence

# Shells add these variables: a program's environment is the one that it was started with.
_IF_PARENT_LIVES = '[ "$PPID" = "$1" ] || exit; shift; unset PWD OLDPWD SHLVL; '
_BECOME = f'{_IF_PARENT_LIVES}exec "$@"'
# The shell stays, as the leader of the group that it ends. What it starts in the background would have no
# standard input by itself: it gets the shell's.
_LEAD = f"{_IF_PARENT_LIVES}trap 'kill -s KILL -- -$$' TERM; exec 3<&0; \"$@\" <&3 3<&- & wait $!"


def child_command(
    parent: int, argv: Sequence[str], *, death_signal: str = "KILL", rights: Sequence[str] = ()
) -> list[str]:
    """Return the command by which a process starts a program that gets a signal when the process ends.

    The program has the process id of the child. Its own children do not get the signal. The process's id is
    ``parent``; ``rights`` are options of setpriv. The thread that starts it counts as the process.
    """
    return ["setpriv", f"--pdeathsig={death_signal}", *rights, "sh", "-c", _BECOME, "sh", str(parent), *argv]


def family_command(parent: int, argv: Sequence[str]) -> list[str]:
    """Return the command by which a process starts a program that ends with all that it starts.

    It has to be the leader of a session of its own (setsid(2)): its process group is killed.
    """
    return ["setpriv", "--pdeathsig=TERM", "sh", "-c", _LEAD, "sh", str(parent), *argv]
