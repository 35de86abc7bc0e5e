"""Seeing runs: curves, landmark maps, videos, a report page. Reads run folders only, and needs no JAX."""
