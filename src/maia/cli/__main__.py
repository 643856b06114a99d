"""Run the command line as ``python -m maia.cli``."""

from maia.cli import main

if __name__ == "__main__":
    main()
