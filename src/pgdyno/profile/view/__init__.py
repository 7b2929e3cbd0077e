"""The account of a transaction's time, as text and as a page. Pure."""
