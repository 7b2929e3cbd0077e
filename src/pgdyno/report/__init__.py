"""Elements of pages and terminal text. The views of a subject lie with it. Pure."""
