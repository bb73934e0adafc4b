"""Command line ``tg-mlc`` as ``python -m tg_mlc``."""

import sys

from tg_mlc.cli import main

if __name__ == "__main__":
    sys.exit(main())
