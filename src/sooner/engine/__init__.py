"""The only place that talks to Spark: sessions, rows, lowering, writing."""
