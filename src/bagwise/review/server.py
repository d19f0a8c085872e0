"""The loopback server behind the review page."""

import json
import socket
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bagwise._utils.optional import require

require("starlette", extra="review")
require("uvicorn", extra="review")

import uvicorn  # noqa: E402
from starlette.applications import Starlette  # noqa: E402
from starlette.concurrency import run_in_threadpool  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

from bagwise.discovery.run.folder import RunFolder  # noqa: E402
from bagwise.discovery.sources.images import ImageError  # noqa: E402
from bagwise.review.access import Guard, is_loopback, run_token  # noqa: E402
from bagwise.review.decisions import Conflict, ReviewError  # noqa: E402
from bagwise.review.session import ReviewSession  # noqa: E402

STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
A_DAY = "private, max-age=86400"
DEFAULT_PORT = 8765


def make_app(session: ReviewSession, *, token: str, host: str, port: int) -> Guard:
    """The ASGI application of one review, behind its guard."""
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in MEDIA_TYPES}

    async def page(request: Request) -> Response:
        return static_file("index.html")

    async def static(request: Request) -> Response:
        return static_file(request.path_params["name"])

    def static_file(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "no such file")
        media_type = MEDIA_TYPES[Path(name).suffix]
        return Response(files[name], media_type=media_type, headers={"Cache-Control": "no-cache"})

    def index(request: Request) -> Response:
        body, headers = session.index(), {"Content-Encoding": "deflate", "Vary": "Accept-Encoding"}
        if "deflate" not in request.headers.get("accept-encoding", ""):
            body, headers = zlib.decompress(body), {}
        return Response(body, media_type="application/json", headers=headers)

    async def item(request: Request) -> Response:  # reads a few rows, waits for nothing: quicker than finding a thread
        return JSONResponse(session.item(request.path_params["item"]))

    def changes(request: Request) -> Response:
        since = request.query_params.get("since", "0")
        if not since.isdecimal():
            raise ReviewError("since must be a whole number")
        return JSONResponse(session.changes(int(since)))

    def picture(request: Request) -> Response:
        make = getattr(session.pictures, request.path_params["size"], None)
        if request.path_params["size"] not in ("thumbnail", "display") or make is None:
            raise HTTPException(404, "no such size")
        data = make(request.path_params["image_id"])
        return Response(data, media_type="image/jpeg", headers={"Cache-Control": A_DAY})

    def post(path: str, act: Callable[[Request, dict[str, Any]], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            body = await _json_object(request)
            return JSONResponse(await run_in_threadpool(act, request, body))

        return Route(path, endpoint, methods=["POST"])

    def conflict(request: Request, error: Exception) -> Response:
        number = request.path_params.get("item")
        body = {"error": str(error)}
        return JSONResponse(body if number is None else {**body, "now": session.item(number)}, 409)

    routes = [
        Route("/", page),
        Route("/static/{name}", static),
        Route("/api/index", index),
        Route("/api/items/{item:int}", item),
        Route("/api/changes", changes),
        Route("/images/{image_id:int}/{size}", picture),
        post("/api/items/{item:int}/decision", lambda request, body: session.decide(request.path_params["item"], body)),
        post("/api/undo", lambda request, body: session.undo(body)),
        post("/api/refit", lambda request, body: session.start_refit()),
        post("/api/export", lambda request, body: session.export(body)),
    ]
    handlers: dict[Any, Any] = {
        Conflict: conflict,
        ReviewError: lambda request, error: JSONResponse({"error": str(error)}, 400),
        ImageError: lambda request, error: JSONResponse({"error": str(error)}, 404),
        HTTPException: lambda request, error: JSONResponse({"error": error.detail}, error.status_code),
        ValueError: lambda request, error: JSONResponse({"error": str(error)}, 400),
        OSError: lambda request, error: JSONResponse({"error": f"the server could not do that: {error}"}, 500),
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), token=token, host=host, port=port)


async def _json_object(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise ReviewError(f"the request is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ReviewError("the request must be a JSON object")
    return body


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a wish, the usual port or, when that is taken, any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wishes = [port] if port is not None else [DEFAULT_PORT, 0]
    for wish in wishes:
        # With the protocol named, asyncio sends small answers at once; otherwise each may wait 40 ms for the last one's
        # acknowledgement.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, wish))
        except OSError as error:
            listener.close()
            if wish == wishes[-1]:
                raise OSError(f"cannot listen on {host} port {wish}: {error.strerror or error}") from error
            continue
        listener.listen()
        return listener
    raise AssertionError("the last wish either binds or raises")


class ReviewServer:
    """A server that listens, and answers once `run` is called.

    Parameters
    ----------
    run : RunFolder
    host, port
        Where to listen: this computer alone, unless told otherwise; without a port, 8765 or any free one.

    Attributes
    ----------
    url : str
        The page's address; it holds the token.
    """

    def __init__(self, run: RunFolder, *, host: str = "127.0.0.1", port: int | None = None):
        if not run.source_root.is_dir():
            raise ReviewError(f"the images of this run are not at {run.source_root} any more: put them back there")
        self.session = ReviewSession(run)
        try:
            self._listener = listen(host, port)
        except OSError:
            self.session.close()
            raise
        self.port: int = self._listener.getsockname()[1]
        token = run_token(run.path)
        self.url = f"http://{_address(host)}:{self.port}/?token={token}"
        app = make_app(self.session, token=token, host=host, port=self.port)
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2)
        )

    def run(self) -> None:
        """Answer requests until interrupted or told to stop."""
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self.close()

    def close(self) -> None:
        """Give the port and the log free."""
        self._listener.close()
        self.session.close()

    def stop(self) -> None:
        """Let `run`, in another thread, return."""
        self._server.should_exit = True


def _address(host: str) -> str:
    """A name for this computer that a browser can open, for a host one can listen on."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    if host == "localhost" or not is_loopback(host):
        return host
    return f"[{host}]" if ":" in host else host
