"""Records of ``pgdyno profile``: where a transaction's time goes."""
