"""``pgdyno setup``: prepare this machine."""

from __future__ import annotations

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo


@click.command(
    name="setup", epilog="\b\nExamples:\n  sudo pgdyno setup --account\n  sudo pgdyno revert --host-only"
)
@click.option("--account", "is_account", is_flag=True, help="Create the system user and group pgdyno.")
def command(*, is_account: bool) -> None:
    """Create a system account for servers, load and builds.

    Without the account, pgdyno running as root uses the account postgres, or else nobody. As postgres, an
    untrusted source tree or library could read and kill the servers that run as that user. The account has no
    home directory, no password and no login shell. Data sets that another account loaded are loaded again.

    pgdyno revert --host-only removes the account and its files: data sets and unfinished builds. It refuses
    to do so while processes run under the account.
    """
    from pgdyno.apply.setup_account import set_up_account
    from pgdyno.host.own_account import KEY
    from pgdyno.postgres.process.local_machine import workspace

    if not is_account:
        raise UsageError("nothing to set up was named", hint="pgdyno setup --account")
    is_made, uid = set_up_account(workspace()), workspace().account.uid
    if not is_made:
        echo(f"{KEY} already exists, uid {uid}")
        return
    echo(f"{KEY} created, uid {uid}: root's scratch servers, load generators and builds run as this account")
    echo("undo: pgdyno revert --host-only")
