"""The HTTP server. It listens on loopback only: who may reach it is decided outside."""

import http.server
import json
import select
import threading

import events
from contexts import language_of
from execution import READ, TURN, WRITE, Execution, Gone, Stream, variables_of
from limits import IDLE_SECONDS, MAX_BODY, MAX_CONNECTIONS, Refusal


class Server(http.server.ThreadingHTTPServer):
    """A server with a bounded number of connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, contexts):
        super().__init__(address, Handler)
        self.contexts = contexts
        self.free = threading.BoundedSemaphore(MAX_CONNECTIONS)

    def process_request(self, request, client_address):
        if self.free.acquire(blocking=False):
            return super().process_request(request, client_address)
        try:
            request.settimeout(1)
            request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except OSError:
            pass
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True

    def do_GET(self):
        self._answer({("health",): lambda: "OK", ("contexts",): self.server.contexts.list})

    def do_POST(self):
        self._answer({("execute",): self._execute, ("contexts",): self._create, ("contexts", "*", "restart"): self.server.contexts.restart})

    def do_DELETE(self):
        self._answer({("contexts", "*"): self.server.contexts.remove})

    def log_message(self, *_):
        """Says nothing: what is executed is nobody else's."""

    def _answer(self, routes):
        """Calls the function of the path and writes what it returns."""
        try:
            self.body = self._read()
            words = self.path.split("?")[0].strip("/").split("/")
            for pattern, function in routes.items():
                if len(pattern) == len(words) and all(p in ("*", w) for p, w in zip(pattern, words)):
                    return self._write(200, function(*[w for p, w in zip(pattern, words) if p == "*"]))
            raise Refusal(404, f"there is no {self.command} {self.path:.100}")
        except Refusal as e:
            self._write(e.status, {"code": e.status, "message": e.message})
        except (Gone, OSError):
            self.close_connection = True

    def _read(self):
        """Returns the body, an object of JSON or nothing."""
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refusal(411, "the length of the request must be given")
        size = self.headers.get("Content-Length", "0")
        if not size.isascii() or not size.isdigit() or int(size) > MAX_BODY:
            self.close_connection = True
            raise Refusal(413, f"the request has more than {MAX_BODY} bytes")
        data = self.rfile.read(int(size))
        if len(data) < int(size):
            raise Gone
        try:
            body = json.loads(data) if data else {}
        except (ValueError, RecursionError) as e:
            raise Refusal(400, f"the request is not JSON: {e}") from e
        if body is not None and not isinstance(body, dict):
            raise Refusal(400, "the request is not an object")
        return body or {}

    def _write(self, status, value):
        if value is STREAMED:
            return
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(204 if status == 200 and value is None else status)
        if data:
            self.send_header("Content-Type", "application/json")
        if data or status != 200:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _create(self):
        language_of(self.body.get("language"))
        return self.server.contexts.create(self.body.get("cwd")).describe()

    def _execute(self):
        code, name = self.body.get("code"), self.body.get("context_id")
        if not isinstance(code, str):
            raise Refusal(400, "code must be a text")
        if name is not None and self.body.get("language") is not None:
            raise Refusal(400, "Only one of context_id or language can be provided")
        if name is not None and not isinstance(name, str):
            raise Refusal(400, "context_id must be a text")
        language_of(self.body.get("language"))
        variables = variables_of(self.body.get("env_vars"))
        self._stream(self.server.contexts.get(name), code, variables)
        return STREAMED

    def _stream(self, context, code, variables):
        """Streams an execution, after those of the context that came before it."""
        stream = Stream(self.connection)
        self._take_turn(context, stream)
        try:
            if context.removed:
                raise Refusal(404, f"Context {context.id} not found")
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.connection.settimeout(0)  # from here on it is waited for by polling
            Execution(context, stream).run(code, variables)
        finally:
            context.lock.release()
        stream.add(events.line(events.END))
        stream.buffer += b"0\r\n\r\n"
        while stream.buffer:
            stream.advance(_ready(stream))
        self.connection.settimeout(self.timeout)

    def _take_turn(self, context, stream):
        """Takes the context's lock, unless the client goes away before."""
        while not context.lock.acquire(timeout=TURN):
            stream.advance(_ready(stream, 0))


STREAMED = object()  # the answer is written already


def _ready(stream, milliseconds=1000):
    """Returns what a connection is ready for."""
    poller = select.poll()
    poller.register(stream.connection, select.POLLIN * stream.watching | select.POLLOUT * bool(stream.buffer))
    found = dict(poller.poll(milliseconds)).get(stream.connection.fileno(), 0)
    failed = found & (select.POLLERR | select.POLLHUP) != 0
    return READ * (failed or found & select.POLLIN != 0) | WRITE * (failed or found & select.POLLOUT != 0)
