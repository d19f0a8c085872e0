"""``python -m bagwise``: the command line."""

from bagwise.cli import main

if __name__ == "__main__":
    main()
