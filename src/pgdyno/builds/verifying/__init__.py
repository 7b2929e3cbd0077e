"""Check that a build behaves like the plain one: tests, query results, data, crashes."""
