"""Same answer, cheaper: one rule per file, one list of rules, one driver."""

from sooner.rewrites.driver import RewriteError, Rewritten, Step, rewrite
from sooner.rewrites.rule import Rule
from sooner.rewrites.rules import RULES

__all__ = ["RULES", "RewriteError", "Rewritten", "Rule", "Step", "rewrite"]
