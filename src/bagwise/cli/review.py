"""bagwise review."""

from __future__ import annotations

from typing import Annotated

import typer

from bagwise.cli.options import RunArgument


def review(
    run: RunArgument,
    host: Annotated[str, typer.Option(help="Where to listen; this computer alone by default.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The port; 8765, or any free one, by default.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Check and correct the boxes of a run on a page in the browser.

    Every decision is saved at once in RUN/decisions.jsonl; stop with Ctrl-C and resume whenever you like.

    Examples: `bagwise review run` · `bagwise review run --port 9000 --no-browser`
    """
    import contextlib
    import gc
    import webbrowser

    from bagwise._utils.optional import require

    for part in ("starlette", "uvicorn"):
        require(part, extra="review")
    from bagwise.discovery.run.folder import RunFolder
    from bagwise.review.access import is_loopback
    from bagwise.review.server import ReviewServer

    server = ReviewServer(RunFolder(run), host=host, port=port)
    gc.freeze()  # nothing of the run is garbage: looking for some would stop every window for a twentieth of a second
    print(f"Review page: {server.url}", flush=True)
    if not is_loopback(host):
        typer.echo(
            "Anyone on your network who has this address can see the images and decide; "
            "the connection is not encrypted.",
            err=True,
        )
    print("Stop with Ctrl-C; every decision is already saved.", flush=True)
    if browser:
        webbrowser.open(server.url)
    with contextlib.suppress(KeyboardInterrupt):  # the ordinary way to end a review
        server.run()
