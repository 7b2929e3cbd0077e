"""Whether a build is the same PostgreSQL: its tests, answers, data and crashes."""
