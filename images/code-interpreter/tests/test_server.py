import http.client
import json
import tempfile
import unittest
from unittest import mock

import fake
import execution
import limits


class Served(unittest.TestCase):
    def setUp(self):
        self.client = fake.Client()
        self.addCleanup(self.client.close)

    def ask(self, method, path, body=None, headers={}):
        connection = http.client.HTTPConnection(*self.client.server.server_address, timeout=120)
        self.addCleanup(connection.close)
        connection.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, [json.loads(line) for line in text.splitlines()] if path == "/execute" else text and json.loads(text)

    def types(self, body):
        status, events = self.ask("POST", "/execute", body)
        self.assertEqual(status, 200)
        return [event["type"] for event in events]


class Requests(Served):
    def test_health(self):
        self.assertEqual(self.ask("GET", "/health"), (200, "OK"))

    def test_refused(self):
        for method, path, body, status in [
            ("GET", "/nothing", None, 404), ("PUT", "/contexts", "{}", 501), ("POST", "/execute", "{", 400), ("POST", "/execute", "[" * 100_000, 400),
            ("POST", "/execute", "[]", 400), ("POST", "/execute", {}, 400), ("POST", "/execute", {"code": 1}, 400),
            ("POST", "/execute", {"code": "", "context_id": "x", "language": "python"}, 400), ("POST", "/execute", {"code": "", "context_id": "x"}, 404),
            ("POST", "/execute", {"code": "", "context_id": []}, 400), ("POST", "/execute", {"code": "", "language": "r"}, 400),
            ("POST", "/execute", {"code": "", "env_vars": []}, 400), ("POST", "/execute", {"code": "", "env_vars": {"A": 1}}, 400),
            ("POST", "/execute", {"code": "", "env_vars": {"A=": ""}}, 400),
            ("POST", "/execute", {"code": "", "env_vars": {f"A{n}": "" for n in range(limits.MAX_VARIABLES + 1)}}, 400),
            ("POST", "/contexts", {"language": "js"}, 400), ("POST", "/contexts", {"cwd": "/nowhere"}, 400), ("POST", "/contexts", {"cwd": 1}, 400),
            ("DELETE", "/contexts/x", None, 404), ("POST", "/contexts/x/restart", None, 404), ("DELETE", "/contexts", None, 404),
        ]:
            with self.subTest(method=method, path=path, body=str(body)[:60]):
                connection = http.client.HTTPConnection(*self.client.server.server_address, timeout=120)
                connection.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body))
                self.assertEqual(connection.getresponse().status, status)
                connection.close()

    def test_lengths(self):
        for header in (b"Transfer-Encoding: chunked", b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: %d" % (limits.MAX_BODY + 1)):
            answer = self.client.raw(b"POST /execute HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
            self.assertIn(answer.split()[1], (b"411", b"413"))

    def test_too_many_connections(self):
        held = [self.client.connect(b"GET /health HTTP/1.1\r\n") for _ in range(limits.MAX_CONNECTIONS)]
        fake.eventually(lambda: self.client.server.free._value == 0)
        self.assertTrue(self.client.raw(b"").startswith(b"HTTP/1.1 503 "))
        for connection in held:
            connection.close()
        fake.eventually(lambda: self.client.server.free._value == limits.MAX_CONNECTIONS)
        self.assertEqual(self.ask("GET", "/health")[0], 200)


class Contexts(Served):
    def test_life(self):
        with tempfile.TemporaryDirectory() as cwd:
            status, made = self.ask("POST", "/contexts", {"language": "Python", "cwd": cwd})
            self.assertEqual((status, made["cwd"], made["language"]), (200, cwd, "python"))
            self.assertEqual(len(self.ask("GET", "/contexts")[1]), 2)
            self.assertEqual(self.ask("POST", f"/contexts/{made['id']}/restart"), (204, ""))
            self.assertEqual([kernel.cwd for kernel in fake.Kernel.made[1:]], [cwd, cwd])
            self.assertTrue(fake.Kernel.made[1].killed)
            self.assertEqual(self.ask("DELETE", f"/contexts/{made['id']}"), (204, ""))
            self.assertEqual(fake.Kernel.made[2].asked, ["close"])
        self.assertEqual(len(self.ask("GET", "/contexts")[1]), 1)

    def test_too_many(self):
        for _ in range(limits.MAX_CONTEXTS - 1):
            self.assertEqual(self.ask("POST", "/contexts", {})[0], 200)
        self.assertEqual(self.ask("POST", "/contexts", {})[0], 429)


class Executions(Served):
    def test_order(self):
        fake.Kernel.scripts["x"] = [fake.message("execute_input", execution_count=1), fake.stream("1"), fake.message("execute_result", data={}), fake.IDLE, fake.stream("late")]
        self.assertEqual(self.types({"code": "x"}), ["number_of_executions", "stdout", "result", "end_of_execution"])

    def test_variables(self):
        fake.Kernel.scripts["x"] = [fake.IDLE]
        self.types({"code": "x", "env_vars": {"A": "'\"", "KEPT": "new"}})
        before, _, after = fake.Kernel.made[0].asked
        env = {"KEPT": "old"}
        with mock.patch("os.environ", env):
            exec(before)
            self.assertEqual(env, {"A": "'\"", "KEPT": "new"})
            exec(after)
            self.assertEqual(env, {"KEPT": "old"})

    def test_dead_kernel(self):
        fake.Kernel.scripts.update(x=[fake.stream("last"), "die"], y=[fake.IDLE])
        status, events = self.ask("POST", "/execute", {"code": "x"})
        self.assertEqual([event.get("name", event["type"]) for event in events], ["stdout", "KernelDied", "end_of_execution"])
        self.assertEqual(self.types({"code": "y"}), ["end_of_execution"])
        fake.Kernel.made[1].process.code = 1  # between two executions
        self.assertEqual(self.types({"code": "y"}), ["error", "end_of_execution"])
        self.assertEqual(self.types({"code": "y"}), ["end_of_execution"])

    def test_client_goes(self):
        expected = []
        for code in ("forever", "again"):
            expected += [code, "interrupt"]
            body = json.dumps({"code": code}).encode()
            self.client.connect(b"POST /execute HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)).close()
            fake.eventually(lambda: fake.Kernel.made[0].asked == expected)

    def test_restart_ends_execution(self):
        body = json.dumps({"code": "forever"}).encode()
        with self.client.connect(b"POST /execute HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) as connection:
            fake.eventually(lambda: fake.Kernel.made[0].asked)
            self.ask("POST", f"/contexts/{self.client.server.contexts.default}/restart")
            self.assertIn(b"ContextRestarted", b"".join(iter(lambda: connection.recv(1 << 16), b"")))

    def test_slow_client(self):
        """A kernel is paused while its client is far behind, and nothing is lost."""
        text, count = "x" * (1 << 20), 40
        fake.Kernel.scripts["held"] = [fake.stream(text)] * count + [fake.IDLE]
        body = json.dumps({"code": "held"}).encode()
        with self.client.connect(b"POST /execute HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)) as connection:
            asked = fake.Kernel.made[0].asked
            fake.eventually(lambda: "pause" in asked)
            self.assertNotIn("resume", asked)
            answer = b"".join(iter(lambda: connection.recv(1 << 20), b""))
        self.assertIn("resume", asked)
        self.assertEqual(answer.count(b"x" * (1 << 20)), count)

    def test_client_that_takes_nothing(self):
        fake.Kernel.scripts["held"] = [fake.stream("x" * (1 << 20))] * 40
        body = json.dumps({"code": "held"}).encode()
        with mock.patch.object(execution, "STALL_SECONDS", 0.5), self.client.connect(b"POST /execute HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)):
            fake.eventually(lambda: fake.Kernel.made[0].asked[-1:] == ["interrupt"])
        self.assertIn("resume", fake.Kernel.made[0].asked)


if __name__ == "__main__":
    unittest.main()
