"""Answers that refine until they are exact."""
