"""Who may talk to the review server: the person who started it, from its own page, and nobody else.

Any web site can make a browser send requests to a local port, and can point its own name at 127.0.0.1. So the
Host must be ours (against renamed hosts), the Origin must be ours (against other sites' requests), and a token
that only the starting terminal shows must come with the first request; it then lives in a cookie that scripts
cannot read and that the browser does not send along from other sites.
"""

import hashlib
import hmac
import ipaddress
import os
import secrets
import socket
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bagwise._utils.caches import cache_folder

LARGEST_BODY = 256 * 1024
PROTECTIVE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def run_token(run: Path) -> str:
    """The secret of this run for this user, made once, so that an open page outlives a restart of the server."""
    name = hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:32]
    path = cache_folder() / "review" / f"{name}.token"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token = path.read_text().strip()
        if len(token) >= 32:
            return token
        path.unlink()  # cut short by a crash
        return run_token(run)
    with os.fdopen(handle, "w") as file:
        file.write(token := secrets.token_urlsafe(32))
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware that refuses strangers and adds the protective headers to every answer.

    Parameters
    ----------
    app : ASGI application
    token : str
    host, port
        Where the server was told to listen. On loopback only loopback names are answered; told to listen elsewhere,
        it answers to that name, to this machine's name and to numeric addresses, which no foreign site can claim.
    """

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int):
        self._app = app
        self._token = token
        self._port = port
        self._open_to_network = not is_loopback(host)
        self._names = {"localhost"} | ({host.lower(), socket.gethostname().lower()} if self._open_to_network else set())
        # Cookies do not know ports: without the port in its name, two reviews would overwrite each other's.
        self._cookie = f"bagwise_review_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no websockets here
        headers = Headers(scope=scope)
        came_with_token = self._query_token(scope) is not None
        refusal = self._refusal(scope, headers)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in PROTECTIVE_HEADERS.items():
                    out[name] = value
                if "cache-control" not in out:
                    out["Cache-Control"] = "no-store"
                if came_with_token and refusal is None:
                    out.append("Set-Cookie", f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        host = headers.get("host", "")
        if not self._is_our_name(host):
            return PlainTextResponse("this server does not answer to that host name", 421)
        origin = headers.get("origin")
        changes_something = scope["method"] not in ("GET", "HEAD")
        if (origin is None and changes_something) or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("requests from other pages are refused", 403)
        if not self._is_known(scope, headers):
            return PlainTextResponse("open the address that `bagwise review` printed: it holds the key", 401)
        if changes_something:
            if headers.get("content-type", "").split(";")[0].strip() != "application/json":
                return PlainTextResponse("send application/json", 415)
            length = headers.get("content-length", "")
            if not length.isdecimal() or int(length) > LARGEST_BODY:
                return PlainTextResponse(f"send at most {LARGEST_BODY} bytes, and say how many", 413)
        return None

    def _is_our_name(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if port != str(self._port):
            return False
        name = name.strip("[]").lower()
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._open_to_network or address.is_loopback

    def _query_token(self, scope: Scope) -> str | None:
        values = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return values[0] if len(values) == 1 else None

    def _is_known(self, scope: Scope, headers: Headers) -> bool:
        given = self._query_token(scope)
        if given is None:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
            given = cookie.value if cookie else ""
        return hmac.compare_digest(given.encode(), self._token.encode())
