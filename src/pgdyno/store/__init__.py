"""Adapter: experiments on disk (SQLite), as they come."""
