"""`python -m continuarm`."""

from continuarm.cli import main

main()
