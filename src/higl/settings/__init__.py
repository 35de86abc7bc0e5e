"""The settings of a run: their names and defaults, presets, layers, and settings derived from an environment."""
