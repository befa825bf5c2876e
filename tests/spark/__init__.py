"""Conformance with real Spark and Hudi, in both directions."""
