"""Speed and memory, measured against peers and against what the machine can do at most. Run: `make bench`."""

import os

# One core for everybody. Numerical libraries read these when they are imported, so they are set before anything is.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
