"""Figures of runs: curves, landmark maps, videos and the report page. Reads run folders only; only videos need JAX."""
