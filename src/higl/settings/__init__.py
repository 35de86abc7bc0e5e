"""The settings of a run: what there is to set, where the values come from, and what fits an environment."""
