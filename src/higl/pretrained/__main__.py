"""`python -m higl.pretrained RUN ...`: publish runs."""

from __future__ import annotations

import sys
from pathlib import Path

from higl.pretrained import publish

for run in sys.argv[1:]:
    print(publish(Path(run)))
