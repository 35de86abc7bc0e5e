"""Files of snapshots: which ones are kept."""

import numpy as np

from higl.run.snapshot_store import MAX_KEPT, SnapshotStore


def test_snapshots_are_thinned_out_evenly(tmp_path):
    store = SnapshotStore(tmp_path)
    for index in range(1, 301):
        (tmp_path / f"{100 * index:012d}.npz").touch()
        store._thin_out(100 * index, 100)
        steps = [int(path.stem) for path in store.paths()]
        assert len(steps) <= MAX_KEPT + 1
        assert steps[-1] == 100 * index
    assert len(set(np.diff(steps[1:-1]))) == 1
