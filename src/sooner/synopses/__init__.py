"""Answers from a tree of aggregates and samples (PASS)."""

from sooner.synopses.definition import Definition, Knobs
from sooner.synopses.suggest import Suggestion, suggest
from sooner.synopses.synopsis import Synopses, Synopsis

__all__ = ["Definition", "Knobs", "Suggestion", "Synopses", "Synopsis", "suggest"]
