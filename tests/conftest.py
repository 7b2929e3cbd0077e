"""Registers the fixtures that tests of several packages share."""

pytest_plugins = ("tests.fix_home", "tests.fix_servers", "tests.fix_debian")
