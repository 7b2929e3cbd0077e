"""Adapter: receipts on disk, and the writers that apply and restore changes."""
