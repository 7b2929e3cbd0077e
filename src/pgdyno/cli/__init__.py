"""The command line, one file per command: arguments in, text or JSON and an exit code out. No logic."""
