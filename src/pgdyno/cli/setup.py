"""``pgdyno setup``: prepare this machine."""

from __future__ import annotations

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo


@click.command(
    name="setup", epilog="\b\nExamples:\n  sudo pgdyno setup --account\n  sudo pgdyno revert --host-only"
)
@click.option("--account", "is_account", is_flag=True, help="Make the system user and group pgdyno.")
def command(*, is_account: bool) -> None:
    """Make a system account for servers, load and builds.

    Without it, root's pgdyno runs them as postgres, or else as nobody: as postgres, an untrusted source tree
    or library could read and end the servers that run as that user. The account has no home, no password and
    no login. Data sets that another account has loaded are loaded again.

    pgdyno revert --host-only removes the account with its files: data sets and unfinished builds. It is
    refused while processes run as it.
    """
    from pgdyno.apply.setup_account import set_up_account
    from pgdyno.host.own_account import KEY
    from pgdyno.postgres.process.local_machine import workspace

    if not is_account:
        raise UsageError("nothing to set up was named", hint="pgdyno setup --account")
    is_made, uid = set_up_account(workspace()), workspace().account.uid
    if not is_made:
        echo(f"{KEY} is there already, uid {uid}")
        return
    echo(f"{KEY} made, uid {uid}: scratch servers, load generators and builds of root run as it")
    echo("undo: pgdyno revert --host-only")
