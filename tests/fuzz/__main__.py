"""``python -m fuzz``: see ``make fuzz`` and docs/testing.md."""

import os
import sys

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before anything is imported: forks lose the threads

from fuzz.campaign import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
