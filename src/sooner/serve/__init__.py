"""Command line and demo: they render Answers and compute nothing."""
