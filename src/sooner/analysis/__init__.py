"""What is known before running: keys, clustering, derivation, lineage blocks, size."""

from sooner.analysis.cardinality import Size, Sizes, estimate
from sooner.analysis.clustering import ClusteringKey, clustering_key
from sooner.analysis.column_size import ColumnSize
from sooner.analysis.dependencies import Dependencies
from sooner.analysis.derivation import Derivation, How, Source, derivation
from sooner.analysis.facts import ColumnFacts, TableFacts, TableInfo
from sooner.analysis.keys import UnionKey, never_null, primary_key, union_key
from sooner.analysis.lineage import LineageBlock, lineage_blocks, lineage_text
from sooner.analysis.plan_dependencies import plan_dependencies

__all__ = [
    "ClusteringKey",
    "ColumnFacts",
    "ColumnSize",
    "Dependencies",
    "Derivation",
    "How",
    "LineageBlock",
    "Size",
    "Sizes",
    "Source",
    "TableFacts",
    "TableInfo",
    "UnionKey",
    "clustering_key",
    "derivation",
    "estimate",
    "lineage_blocks",
    "lineage_text",
    "never_null",
    "plan_dependencies",
    "primary_key",
    "union_key",
]
