"""Materialized views: kept exact when tables change, answered freshly while they are stale."""
