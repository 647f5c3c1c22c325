"""Runs the command `nescio` for `python -m nescio`."""

import sys

from .cli import main

sys.exit(main())
