"""The account that ``pgdyno setup --account`` makes for servers under test, load generators and builds.

It is known by its comment. An ordinary user who has the same name cannot give himself that comment where
login.defs says so (CHFN_RESTRICT), as it does on Debian and RHEL.
"""

from __future__ import annotations

NAME = "pgdyno"
KEY = f"account {NAME}"
"""Key of the change that makes it."""
COMMENT = "servers and builds of pgdyno"
HOME, SHELL = "/nonexistent", "/usr/sbin/nologin"
WANTED = f"system account, home {HOME}, shell {SHELL}"
"""Value of the change that makes it."""

MAKING = (
    "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", HOME, "--shell", SHELL,
    "--comment", COMMENT, NAME,
)  # fmt: skip
REMOVING = ("userdel", NAME)
REMOVING_GROUP = ("groupdel", NAME)

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where root, and programs of another account, look for programs: secure_path of Debian's sudoers file."""

MEASURING_LOCK = "measuring.lock"
"""File of a workspace that is locked while servers or builds run there."""
