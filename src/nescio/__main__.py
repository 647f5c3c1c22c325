"""`python -m nescio` is the command `nescio`."""

import sys

from .cli import main

sys.exit(main())
