"""Requests over persistent connections, using only the standard library."""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from types import TracebackType
from typing import Any, BinaryIO, Callable, Dict, Iterable, Mapping, Optional, Tuple, Type, TypeVar, Union

from ._errors import ConnectionFailed, Error, RateLimited, ServiceError, Unavailable, service_error
from ._profile import Profile

T = TypeVar("T")
Body = Union[bytes, BinaryIO, io.RawIOBase, None]
Query = Union[Mapping[str, Any], Iterable[Tuple[str, Any]], None]

# Exceptions of broken connections.
BROKEN = (OSError, http.client.HTTPException)

# How long requests are retried while the service is unreachable, in seconds.
PATIENCE = 300.0

# Last path segments of POST requests that are safe to repeat: a submission with the same
# name and settings returns the existing job.
_HARMLESS = ("submit-job", "submit-batch", "complete", "link", "result", "validate-job", "estimate", "cancel")


class Response:
    """A response whose body has not been read. Close it, or read it to the end."""

    def __init__(self, connection: http.client.HTTPConnection, raw: http.client.HTTPResponse, done: Callable[[bool], None]) -> None:
        self._connection, self._raw, self._done = connection, raw, done
        self.status = raw.status
        self.headers: Dict[str, str] = {name.lower(): value for name, value in raw.getheaders()}

    def read(self, size: int = -1) -> bytes:
        """Reads at most size bytes, or everything if size is negative."""
        return self._raw.read(size if size >= 0 else None)

    def readline(self) -> bytes:
        """Reads a line; returns b"" at the end."""
        return self._raw.readline(1 << 20)

    def json(self) -> Any:
        """Reads the rest as JSON; returns None if it is not JSON."""
        try:
            return json.loads(self.read())
        except ValueError:
            return None

    def expect(self, seconds: float) -> None:
        """Makes reads fail if no data arrives for this long."""
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)

    def abort(self) -> None:
        """Interrupts a read in another thread."""
        if self._connection.sock is not None:
            try:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed

    def close(self) -> None:
        """Returns the connection to the pool if the body was read; closes it otherwise."""
        self._done(self._raw.isclosed() or self._raw.length == 0)

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class Transport:
    """Sends requests with one API key. It is thread-safe."""

    def __init__(self, profile: Profile, timeout: float) -> None:
        self.profile, self.timeout = profile, timeout
        self._idle: Dict[Tuple[str, str], list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()
        self._tls: Optional[ssl.SSLContext] = None
        self._answered = False

    def call(self, method: str, path: str, query: Query = None, body: Any = None) -> Any:
        """Sends a request to the API and returns its JSON. If the connection breaks, it retries
        requests that are safe to repeat, provided that the service has responded before.

        Raises:
            ServiceError: if the service rejects the request.
            ConnectionFailed: if it does not respond.
        """
        harmless = method in ("GET", "PUT") or method == "POST" and path.rsplit("/", 1)[-1] in _HARMLESS
        sent = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}

        def once() -> Any:
            with self.open(method, path, query, sent, headers) as answer:
                return answer.json()

        if not harmless or not self._answered:
            return once()
        return patiently(once)

    def open(self, method: str, path: str, query: Query = None, body: Body = None, headers: Optional[Mapping[str, str]] = None) -> Response:
        """Sends a request to the API with the key and returns the unread response if it was successful."""
        all_headers = {"x-api-key": self.profile.key, "Accept": "application/json", **(headers or {})}
        response = self.send(method, self.profile.server + path + _encode(query), body, all_headers)
        self._answered = True
        return response

    def send(self, method: str, url: str, body: Body = None, headers: Optional[Mapping[str, str]] = None) -> Response:
        """Sends a request unchanged, without the key, and returns the unread response if it was
        successful. Redirects are not followed: the service sends none."""
        u = urllib.parse.urlsplit(url)
        target = urllib.parse.urlunsplit(("", "", u.path or "/", u.query, ""))
        try:
            for fresh in (False, True):
                connection, reused = self._take(u.scheme, u.netloc, fresh)
                try:
                    return self._exchange(connection, (u.scheme, u.netloc), method, target, body, headers or {})
                except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                    connection.close()
                    if not reused or isinstance(body, io.IOBase):
                        raise  # otherwise the server had closed the idle connection
            raise AssertionError("not reached")
        except BROKEN as e:
            proxy = _proxy(u.scheme, u.netloc)
            through = f" through the proxy {proxy} (from {u.scheme}_proxy)" if proxy else ""
            raise ConnectionFailed(f"{method} {u.scheme}://{u.netloc}{u.path}{through}: {e or type(e).__name__}") from e

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for c in connections:
                c.close()

    def _exchange(
        self, connection: http.client.HTTPConnection, place: Tuple[str, str], method: str, target: str, body: Body, headers: Mapping[str, str]
    ) -> Response:
        via = getattr(connection, "molrun_prefix", "")
        try:
            connection.request(method, via + target, body=body, headers={"User-Agent": "molrun-python", **headers})
        except (BrokenPipeError, ConnectionResetError):
            if not isinstance(body, io.IOBase):
                raise
            # The service might have responded before it read the whole body.
        raw = connection.getresponse()

        def done(whole: bool) -> None:
            if whole and not raw.will_close:
                with self._lock:
                    kept = self._idle.setdefault(place, [])
                    if len(kept) < 16:
                        kept.append(connection)
                        return
            connection.close()

        response = Response(connection, raw, done)
        if 200 <= response.status < 300 or response.status == 304:
            return response
        with response:
            raise service_error(response.status, response.json(), response.headers)

    def _take(self, scheme: str, netloc: str, fresh: bool) -> Tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            kept = self._idle.get((scheme, netloc))
            if kept and not fresh:
                return kept.pop(), True
        connection = self._connect(scheme, netloc)
        connection.timeout = min(10.0, self.timeout)
        connection.connect()
        connection.sock.settimeout(self.timeout)
        return connection, False

    def _connect(self, scheme: str, netloc: str) -> http.client.HTTPConnection:
        proxy = _proxy(scheme, netloc)
        through = proxy or netloc
        block = 1 << 18
        if scheme == "https":
            secure = http.client.HTTPSConnection(through, timeout=self.timeout, blocksize=block, context=self._context())
            if proxy:
                secure.set_tunnel(netloc)
            return secure
        plain = http.client.HTTPConnection(through, timeout=self.timeout, blocksize=block)
        if proxy:
            plain.molrun_prefix = "http://" + netloc  # type: ignore[attr-defined]
        return plain

    def _context(self) -> ssl.SSLContext:
        with self._lock:
            if self._tls is None:
                self._tls = ssl.create_default_context(cafile=self.profile.trust or None)
                self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
            return self._tls


def _proxy(scheme: str, netloc: str) -> Optional[str]:
    """Returns host and port of the proxy for a server, chosen like the command line does: none for this machine."""
    host = urllib.parse.urlsplit("//" + netloc).hostname or ""
    try:
        here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        here = host == "localhost"
    if here or urllib.request.proxy_bypass(netloc):
        return None
    proxy = urllib.request.getproxies().get(scheme, "")
    return urllib.parse.urlsplit(proxy if "//" in proxy else "//" + proxy).netloc.rpartition("@")[2] or None


def _encode(query: Query) -> str:
    if not query:
        return ""
    pairs = query.items() if isinstance(query, Mapping) else query
    flat = []
    for name, value in pairs:
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                flat.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return "?" + urllib.parse.urlencode(flat) if flat else ""


def path(*segments: str) -> str:
    """Returns the path of unescaped segments."""
    out = ""
    for s in segments:
        quoted = urllib.parse.quote(s, safe="")
        if s in (".", ".."):
            quoted = s.replace(".", "%2E")
        elif s == "summary":  # a job of this name, not the route
            quoted = "%73ummary"
        out += "/" + quoted
    return out


def passes(e: Error) -> bool:
    """Reports whether a failed request might succeed later."""
    return isinstance(e, (ConnectionFailed, RateLimited, Unavailable)) and getattr(e, "code", "") != "STORAGE_FULL"


def pause(e: Error, stuck: int) -> float:
    """Returns how many seconds to wait before the next attempt."""
    asked = e.retry_after if isinstance(e, ServiceError) else None
    return min(asked if asked is not None else 0.25 * stuck, 15.0)


def patiently(do: Callable[[], T], patience: float = PATIENCE) -> T:
    """Retries while connections break or the rate limit is exceeded, up to patience seconds."""
    began = time.monotonic()
    stuck = 0
    while True:
        try:
            return do()
        except (ConnectionFailed, RateLimited) as e:
            stuck += 1
            if time.monotonic() - began > patience:
                raise
            time.sleep(pause(e, stuck))
