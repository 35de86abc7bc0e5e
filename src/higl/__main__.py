"""`python -m higl`: the command line, for an interpreter whose scripts are not on the path."""

import sys

from higl.cli import main

sys.exit(main())
