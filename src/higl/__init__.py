"""Hierarchical reinforcement learning guided by landmarks."""

__version__ = "0.1.0"
