"""What the package does with a gateway that misbehaves, and with tasks that are cancelled."""

import asyncio
import base64
import http.server
import json
import threading
import time
import unittest
from typing import Any, Dict, List, Tuple

from atoll import AsyncSandbox, AtollError, Client, LimitError, Sandbox, UnreachableError

BOX = {"id": "b", "containerName": "c", "portToken": "t", "state": "running"}


class Gateway(http.server.BaseHTTPRequestHandler):
    """A gateway that answers what the test says, by method and path."""

    protocol_version = "HTTP/1.1"
    answers: Dict[str, Tuple[int, str, bytes]] = {}
    seen: List[Tuple[str, Any]] = []
    held = threading.Event()

    def answer(self) -> None:
        path = self.path.split("?")[0]
        size = int(self.headers.get("Content-Length", "0"))
        self.rfile.read(size)
        self.seen.append((self.command + " " + path, self.headers))
        if path.endswith("/exec"):
            self.held.set()
            self.rfile.read(1)  # until the client is gone
            self.close_connection = True
            return
        status, kind, body = self.answers.get(self.command + " " + path, (200, "application/json", json.dumps(BOX).encode()))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_PUT = answer

    def log_message(self, *_: object) -> None:
        pass


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        Gateway.answers, Gateway.seen = {}, []
        Gateway.held.clear()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = Client(f"http://127.0.0.1:{self.server.server_port}", "secret")
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.client.close)

    def box(self) -> Sandbox:
        return Sandbox.connect("b", client=self.client)

    def test_output_goes_on_after_an_event(self) -> None:
        Gateway.answers["GET /api/v1/sandboxes/b/processes/p"] = (200, "application/json", json.dumps({"id": "p", "pid": 1, "running": True}).encode())
        data = base64.b64encode(b"hi").decode()
        events = f'id: 1-2\nevent: stdout\ndata: {{"data":"{data}","lost":3}}\n\nevent: ended\ndata: {{"exitCode":0}}\n\n'
        Gateway.answers["GET /api/v1/sandboxes/b/processes/p/output"] = (200, "text/event-stream", events.encode())
        (wrote,) = self.box().process("p").output(after="1-1")
        self.assertEqual((wrote.stream, wrote.data, wrote.lost, wrote.id), ("stdout", b"hi", 3, "1-2"))
        self.assertEqual(Gateway.seen[-1][1]["Last-Event-ID"], "1-1")

    def test_ports_are_asked_without_the_token_of_the_gateway(self) -> None:
        Gateway.answers["GET /x"] = (404, "text/plain", b"none")
        answer = self.box().port(8000).fetch("/x")
        self.assertEqual((answer.status, answer.text), (404, "none"))
        headers = Gateway.seen[-1][1]
        self.assertIsNone(headers["Authorization"])
        self.assertEqual((headers["Host"], headers["Atoll-Port-Token"]), (f"8000-b.localhost:{self.server.server_port}", "t"))
        with self.assertRaises(AtollError) as refused:
            self.box().port(8000).fetch("/x", limit=3)
        self.assertEqual(refused.exception.code, "answer_too_large")

    def test_what_is_no_websocket_is_refused(self) -> None:
        with self.assertRaises(AtollError) as refused:
            self.client.web_socket("/api/v1/sandboxes/b")
        self.assertEqual(refused.exception.code, "not_a_websocket")
        Gateway.answers["GET /full"] = (429, "application/problem+json", b'{"status":429,"code":"too_many"}')
        with self.assertRaises(LimitError):
            self.client.web_socket("/full")

    def test_a_download_that_fails_says_why(self) -> None:
        Gateway.answers["GET /api/v1/sandboxes/b/files/archive"] = (429, "application/problem+json", b'{"status":429,"code":"too_many"}')
        with self.assertRaises(LimitError):
            self.box().files.download("/x", "/nowhere")

    def test_a_command_is_never_sent_twice(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        with self.assertRaises(UnreachableError):
            self.client.call("POST", "/api/v1/sandboxes")

    def test_a_task_that_is_cancelled_ends_its_request(self) -> None:
        async def work() -> None:
            box = await AsyncSandbox.connect("b", client=self.client)
            task = asyncio.ensure_future(box.run("sleep 1000"))
            await asyncio.get_running_loop().run_in_executor(None, Gateway.held.wait)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        before = time.monotonic()
        asyncio.run(work())
        self.assertLess(time.monotonic() - before, 60)
        self.assertEqual(len([path for path, _ in Gateway.seen if path.endswith("/exec")]), 1)


if __name__ == "__main__":
    unittest.main()
