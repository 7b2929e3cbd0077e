"""Command lines of child processes that exit with their parent, whatever ends the parent.

The kernel sends such a child a signal (PR_SET_PDEATHSIG in prctl(2)), with two exceptions: the child changed
its credentials after the prctl call, or the parent had already exited. So setpriv changes the credentials
before it requests the signal, and a shell then compares its parent with the expected one. If they differ, the
program is not executed.
"""

from __future__ import annotations

from collections.abc import Sequence

# Shells add these variables; unsetting them keeps the program's environment as the caller set it.
_IF_PARENT_LIVES = '[ "$PPID" = "$1" ] || exit; shift; unset PWD OLDPWD SHLVL; '
_BECOME = f'{_IF_PARENT_LIVES}exec "$@"'
# The shell stays as leader of the process group that it kills. A background command would get /dev/null as
# standard input, so the shell passes its own.
_LEAD = f"{_IF_PARENT_LIVES}trap 'kill -s KILL -- -$$' TERM; exec 3<&0; \"$@\" <&3 3<&- & wait $!"


def child_command(
    parent: int, argv: Sequence[str], *, death_signal: str = "KILL", rights: Sequence[str] = ()
) -> list[str]:
    """Return the command for a child process that gets ``death_signal`` when process ``parent`` exits.

    The program has the child's process id. Its own children do not get the signal. ``rights`` are options of
    setpriv. The kernel watches the thread that starts the child: the signal is sent when that thread exits.
    """
    return ["setpriv", f"--pdeathsig={death_signal}", *rights, "sh", "-c", _BECOME, "sh", str(parent), *argv]


def family_command(parent: int, argv: Sequence[str]) -> list[str]:
    """Return the command for a child process that is killed with all its descendants when ``parent`` exits.

    It must lead its own session (setsid(2)), because its process group is killed.
    """
    return ["setpriv", "--pdeathsig=TERM", "sh", "-c", _LEAD, "sh", str(parent), *argv]
