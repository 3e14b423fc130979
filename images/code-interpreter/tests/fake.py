"""A kernel for tests: a list of messages for each execution, and a record of what was
asked of it."""

import os
import select
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "files", "opt", "atoll", "code-interpreter"))

import contexts  # noqa: E402
import server  # noqa: E402


def message(kind, **content):
    return {"msg_type": kind, "header": {"date": "now"}, "content": content}


def stream(text):
    return message("stream", name="stdout", text=text)


IDLE = message("status", execution_state="idle")


class Process:
    code = None

    def poll(self):
        return self.code

    def wait(self):
        return self.code


class Kernel:
    """Answers code with scripts[code]; code without a script is never done."""

    scripts = {}
    made = []

    def __init__(self, cwd):
        self.cwd, self.base, self.killed, self.process, self.asked = cwd, {"KEPT": "old"}, False, Process(), []
        self.waiting = {}
        Kernel.made.append(self)

    def execute(self, code, silent=False):
        self.asked.append(code)
        self.waiting[len(self.asked)] = list(Kernel.scripts.get(code, []))
        return len(self.asked)

    def wait(self, request, milliseconds, client=None, writing=False):
        poller, found = select.poll(), {}
        if client is not None:
            poller.register(client, select.POLLIN | (select.POLLOUT if writing else 0))
        found = dict(poller.poll(0 if self.waiting[request] else 10))
        some, self.waiting[request] = self.waiting[request][:1], self.waiting[request][1:]
        if self.asked[-1] == "held" and "pause" in self.asked and "resume" not in self.asked:
            self.waiting[request], some = some + self.waiting[request], []
        if some == ["die"]:
            self.process.code, some = -9, []
        state = found.get(client.fileno(), 0) if client is not None else 0
        return some, (state & select.POLLIN != 0) * 1 | (state & select.POLLOUT != 0) * 2

    def is_alive(self):
        return self.process.code is None

    def interrupt(self):
        self.asked.append("interrupt")

    def pause(self):
        self.asked.append("pause")

    def resume(self):
        self.asked.append("resume")

    def kill(self):
        self.killed, self.process.code = True, -9

    def close(self):
        self.asked.append("close")


def eventually(condition):
    """Returns when condition holds, and fails after a while."""
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it never happened")
        time.sleep(0.01)


class Client:
    """A server with fake kernels, and requests to it."""

    def __init__(self):
        Kernel.scripts, Kernel.made = {}, []
        self.server = server.Server(("127.0.0.1", 0), contexts.Contexts(Kernel, os.getcwd()))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def connect(self, data=b""):
        connection = socket.create_connection(self.server.server_address, timeout=120)
        connection.sendall(data)
        return connection

    def raw(self, data):
        """Sends bytes and returns all that is answered before the connection ends."""
        with self.connect(data) as connection:
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
