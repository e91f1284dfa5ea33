"""Ranges that hold whatever the missing rows are (Predicate-Constraints)."""
