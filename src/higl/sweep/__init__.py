"""Many runs: the catalogue of the paper's figures, running them here or on a cluster, statistics, results."""
