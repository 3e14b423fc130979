"""Requests to a gateway, over HTTP or its socket."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import ssl
import threading
import urllib.parse
from dataclasses import dataclass
from typing import IO, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

from . import _local
from ._cancel import waits_for
from ._errors import AtollError, UnreachableError, error_of
from ._websocket import WebSocket, handshake

Body = Union[None, bytes, IO[bytes]]
Query = Mapping[str, Union[None, str, int, bool, List[str]]]

# _RETRIES is how often a request is sent again that cannot have been carried out, or that only looks.
_RETRIES = 2
# _KEPT is how many connections are kept open.
_KEPT = 8


class Event(NamedTuple):
    """An event of a stream; id is where another stream goes on."""

    name: str
    data: Any
    id: str


@dataclass(frozen=True)
class Response:
    """What a server at a port of a sandbox answered."""

    status: int
    headers: Dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """A gateway. It is safe for use by several threads.

    Without arguments it is that of ATOLL_URL and ATOLL_TOKEN, or this user's own on this
    machine, which is started if none runs.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, socket_path: Optional[str] = None, timeout: Optional[float] = None) -> None:
        if url is None and socket_path is None:
            url = os.environ.get("ATOLL_URL") or None
        self._token = token or (os.environ.get("ATOLL_TOKEN") if url else None)
        self._url = urllib.parse.urlsplit(url) if url else None
        if self._url is not None and (self._url.scheme not in ("http", "https") or not self._url.hostname or self._url.username):
            raise ValueError("the URL must be http:// or https:// and a host")
        self._socket = socket_path
        self._own = url is None and socket_path is None
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Close the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, path: str, *, query: Optional[Query] = None, body: Any = None) -> Any:
        """Send JSON and return the JSON that comes back."""
        content = None if body is None else json.dumps(body).encode()
        response, connection = self.send(method, path, query=query, content=content, kind="application/json")
        text = response.read()
        self._keep(response, connection)
        return json.loads(text) if text else None

    def events(self, method: str, path: str, *, query: Optional[Query] = None, body: Any = None, headers: Optional[Mapping[str, str]] = None) -> Iterator[Event]:
        """Yield the events of a stream. To close the iterator ends the stream."""
        content = None if body is None else json.dumps(body).encode()
        response, connection = self.send(method, path, query=query, content=content, kind="application/json", accept="text/event-stream", headers=headers)
        try:
            yield from _parse_events(response, connection)
        finally:
            connection.close()

    def send(self, method: str, path: str, *, query: Optional[Query] = None, content: Body = None, kind: str = "application/octet-stream", accept: str = "application/json", headers: Optional[Mapping[str, str]] = None) -> Tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        """Send a request and return the answer, which is a success, with its connection."""
        target = path + _encode(query)
        sent = {"Accept": accept, **(headers or {})}
        if content is not None:
            sent["Content-Type"] = kind
        if self._token:
            sent["Authorization"] = "Bearer " + self._token
        for attempt in range(_RETRIES + 1):
            connection = self._take()
            try:
                waits_for(connection)
                if connection.sock is None:
                    connection.connect()
            except OSError as err:  # nothing was sent
                connection.close()
                if attempt == _RETRIES:
                    raise UnreachableError(f"the gateway does not answer: {err}", "is it running?") from err
                self._restart()
                continue
            try:
                connection.request(method, target, body=content, headers=sent, encode_chunked=True)
                response = connection.getresponse()
            except (http.client.HTTPException, OSError) as err:
                connection.close()
                if method == "GET" and attempt < _RETRIES:  # it only looks: it may be sent again
                    continue
                raise UnreachableError(f"the connection to the gateway broke: {err}") from err
            if response.status < 300:
                return response, connection
            raise self._refusal(response, connection)
        raise AssertionError("unreachable")

    def _refusal(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> Exception:
        text = response.read(1 << 20)
        self._keep(response, connection)
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {"status": response.status, "title": response.reason}
        return error_of(problem, response.status)

    def _restart(self) -> None:
        """Find this user's gateway again, which a private one may have left."""
        if self._own:
            self._socket = _local.start_private()

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._connection()
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()  # the gateway has closed it

    def _connection(self) -> http.client.HTTPConnection:
        if self._url is None:
            if self._socket is None:
                path = _local.default_socket()
                self._socket = path if _local.answers(path) else _local.start_private()
            return _UnixConnection(self._socket, self._timeout)
        host, port = str(self._url.hostname), self._url.port
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self._timeout)

    def web_socket(self, path: str, *, query: Optional[Query] = None) -> WebSocket:
        """Open a WebSocket."""
        headers, accept = handshake()
        response, connection = self.send("GET", path, query=query, headers=headers)
        waits_for(None)
        if response.status != 101 or response.headers.get("Sec-WebSocket-Accept") != accept:
            connection.close()
            raise AtollError({"code": "not_a_websocket", "detail": "the gateway's answer is no WebSocket"})
        return WebSocket(response, connection)

    def fetch(self, method: str, path: str, *, headers: Mapping[str, str], content: Body = None, limit: int) -> Response:
        """Send a request for a port of a sandbox, without the token of the gateway."""
        connection = self._connection()
        try:
            waits_for(connection)
            connection.request(method, path, body=content, headers=dict(headers))
            answer = connection.getresponse()
            body = answer.read(limit + 1)
        except (http.client.HTTPException, OSError) as err:
            raise UnreachableError(f"the gateway does not answer: {err}", "is it running?") from err
        finally:
            waits_for(None)
            connection.close()
        if len(body) > limit:
            raise AtollError({"code": "answer_too_large", "detail": f"the answer has more than {limit} bytes", "hint": "raise limit"})
        return Response(answer.status, dict(answer.headers.items()), body)

    def _keep(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        waits_for(None)
        if response.will_close or not response.isclosed():
            connection.close()
            return
        with self._lock:
            if len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def port_address(self, port: int, box_id: str) -> Tuple[str, str]:
        """Return the URL of a port of a sandbox, and the host name that requests to it have."""
        name = f"{port}-{box_id}"
        if self._url is None:
            return "", name + ".localhost"
        host = str(self._url.hostname)
        below = "localhost" if host.replace(".", "").isdigit() or ":" in host else host
        suffix = f":{self._url.port}" if self._url.port else ""
        return f"{self._url.scheme}://{name}.{below}{suffix}", f"{name}.{below}{suffix}"


def _encode(query: Optional[Query]) -> str:
    pairs: List[Tuple[str, str]] = []
    for name, value in (query or {}).items():
        values: List[Union[None, str, int]] = []
        values += value if isinstance(value, list) else (value,)
        for one in values:
            if one is not None and one is not False:
                pairs.append((name, "true" if one is True else str(one)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def _parse_events(response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> Iterator[Event]:
    name, mark, data = "message", "", []  # type: Tuple[str, str, List[str]]
    while True:
        waits_for(connection)
        try:
            raw = response.readline()
        except (http.client.HTTPException, OSError) as err:
            raise UnreachableError(f"the connection to the gateway broke: {err}") from err
        finally:
            waits_for(None)
        if not raw:
            return
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line == "":
            if data:
                yield Event(name, json.loads("\n".join(data)), mark)
            name, data = "message", []
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("id:"):
            mark = line[3:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].lstrip(" "))


def path_of(*parts: str) -> str:
    """Return the path of an operation on sandboxes."""
    return "/api/v1/sandboxes" + "".join("/" + urllib.parse.quote(part, safe="") for part in parts)


def without_none(values: Dict[str, Any]) -> Dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in values.items() if value is not None}
