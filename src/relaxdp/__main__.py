"""`python -m relaxdp` is the `relaxdp` command."""

from relaxdp.cli.main import main

main()
