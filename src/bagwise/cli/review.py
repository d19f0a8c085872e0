"""`bagwise review`: the page on which a person checks the boxes."""

import contextlib
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from bagwise._optional import require


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command(rich_help_panel="Objects in photographs")
    def review(
        run: Annotated[Path, typer.Argument(help="The folder that bagwise discover wrote.", metavar="RUN")],
        host: Annotated[str, typer.Option(help="Where to listen; this computer alone by default.")] = "127.0.0.1",
        port: Annotated[
            int | None, typer.Option(min=0, max=65535, help="The port; 8765, or any free one, by default.")
        ] = None,
        browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    ) -> None:
        """Check and correct the boxes of a run on a page in the browser.

        Every decision is saved at once in RUN/decisions.jsonl; stop with Ctrl-C and go on whenever you like.

        Examples: `bagwise review run` · `bagwise review run --port 9000 --no-browser`
        """
        for part in ("starlette", "uvicorn"):
            require(part, extra="review")
        from bagwise.discovery.runfolder import RunFolder
        from bagwise.review.access import is_loopback
        from bagwise.review.server import ReviewServer

        server = ReviewServer(RunFolder(run), host=host, port=port)
        print(f"Review page: {server.url}", flush=True)
        if not is_loopback(host):
            print(
                "Anyone on your network who has this address can see the images and decide; "
                "the connection is not encrypted.",
                file=sys.stderr,
            )
        print("Stop with Ctrl-C; every decision is already saved.", flush=True)
        if browser:
            webbrowser.open(server.url)
        with contextlib.suppress(KeyboardInterrupt):  # the ordinary way to end a review
            server.run()
