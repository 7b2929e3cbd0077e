"""The account that ``pgdyno setup --account`` creates for servers under test, load generators and builds.

It is recognized by its comment. An ordinary user of the same name cannot set that comment if CHFN_RESTRICT in
login.defs forbids it, as on Debian and RHEL.
"""

from __future__ import annotations

NAME = "pgdyno"
KEY = f"account {NAME}"
"""Key of the change that creates the account."""
COMMENT = "servers and builds of pgdyno"
HOME, SHELL = "/nonexistent", "/usr/sbin/nologin"
WANTED = f"system account, home {HOME}, shell {SHELL}"
"""Value of the change that creates the account."""

MAKING = (
    "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", HOME, "--shell", SHELL,
    "--comment", COMMENT, NAME,
)  # fmt: skip
REMOVING = ("userdel", NAME)
REMOVING_GROUP = ("groupdel", NAME)

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of root and of programs run as another account: secure_path in Debian's sudoers file."""

MEASURING_LOCK = "measuring.lock"
"""File in a workspace that is locked while servers or builds run there."""
