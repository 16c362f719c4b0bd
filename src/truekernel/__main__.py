"""`python -m truekernel`: the command line."""

import sys

from truekernel.cli import main

sys.exit(main())
