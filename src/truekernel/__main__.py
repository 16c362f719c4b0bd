"""`python -m truekernel`: the command line."""

from truekernel.cli import main

main()
