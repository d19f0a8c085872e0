"""``bagwise`` and ``python -m bagwise``: the command line, or what to install where it is not there."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from bagwise import cli
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "bagwise":
            raise
        print(
            f"bagwise: the command line needs the package '{error.name}': pip install 'bagwise[cli]', or "
            "'bagwise[vision]' for images",
            file=sys.stderr,
        )
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
