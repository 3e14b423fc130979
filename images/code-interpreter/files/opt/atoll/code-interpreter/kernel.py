"""A Jupyter kernel: a process that is reached over sockets of a private directory."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import zmq
from jupyter_client.connect import write_connection_file
from jupyter_client.session import Session

import events
from limits import START_SECONDS, Refusal

CHANNELS = {"shell": zmq.DEALER, "iopub": zmq.SUB}


class Kernel:
    """A running kernel. One thread uses it at a time; kill may be called by any."""

    def __init__(self, cwd):
        self.cwd = cwd
        self.dir = tempfile.mkdtemp(prefix="kernel-")
        self.killed = False
        self.base = dict(os.environ)
        for name in ("IPYTHONDIR", "MPLCONFIGDIR", "JUPYTER_RUNTIME_DIR"):
            self.base.setdefault(name, os.path.join(self.dir, name.lower()))
        self.base["JPY_PARENT_PID"] = str(os.getpid())  # it ends when this process does
        self._launch()
        try:
            self._await_first_answer()
        except BaseException:
            self.kill()
            self.close()
            raise

    def _launch(self):
        key = secrets.token_hex(32).encode()
        path, connection = write_connection_file(os.path.join(self.dir, "kernel.json"), transport="ipc", ip=os.path.join(self.dir, "k"), key=key)
        self.session = Session(key=key, signature_scheme=connection["signature_scheme"])
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", path, "--HistoryManager.enabled=False"]
        try:
            self.process = subprocess.Popen(command, cwd=self.cwd, env=self.base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        except OSError as e:
            shutil.rmtree(self.dir, ignore_errors=True)
            raise Refusal(400, f"cwd {self.cwd}: {e.strerror}") from e
        self.sockets = {}
        for name, kind in CHANNELS.items():
            socket = zmq.Context.instance().socket(kind)
            socket.linger = 0
            socket.set_hwm(0)  # what this process takes is bounded by holding the kernel up
            if kind == zmq.SUB:
                socket.subscribe(b"")
            socket.connect(f"ipc://{connection['ip']}-{connection[name + '_port']}")
            self.sockets[name] = socket

    def _await_first_answer(self):
        """Returns when the kernel answers, and what it publishes arrives."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.is_alive():
            request = self._send("kernel_info_request", {})
            until = time.monotonic() + 1
            while time.monotonic() < until and self.is_alive():
                messages, _ = self.wait(request, 100)
                if any(map(events.is_idle, messages)):
                    return
        raise Refusal(500, f"the kernel did not start (exit status {self.process.poll()})")

    def _send(self, kind, content):
        return self.session.send(self.sockets["shell"], kind, content)["header"]["msg_id"]

    def execute(self, code, silent=False):
        """Asks for an execution and returns its id."""
        return self._send("execute_request", {"code": code, "silent": silent, "store_history": not silent, "user_expressions": {}, "allow_stdin": False, "stop_on_error": False})

    def wait(self, request, milliseconds, client=None, writing=False):
        """Returns the messages of a request, and what the client's connection is ready
        for, when there is either or after a time."""
        poller = zmq.Poller()
        for socket in self.sockets.values():
            poller.register(socket, zmq.POLLIN)
        if client is not None:
            poller.register(client, zmq.POLLIN | (zmq.POLLOUT if writing else 0))
        ready = dict(poller.poll(milliseconds))
        if self.sockets["shell"] in ready:
            self._receive("shell")  # says nothing that is not published too
        found = self._receive("iopub") if self.sockets["iopub"] in ready else []
        state = ready.get(client and client.fileno(), 0)
        if state & zmq.POLLERR:
            state = zmq.POLLIN | zmq.POLLOUT  # which tell the error
        return [m for m in found if m["parent_header"].get("msg_id") == request], state

    def _receive(self, name, most=100):
        """Returns up to most messages that have arrived."""
        found = []
        while len(found) < most:
            try:
                _, message = self.session.recv(self.sockets[name], zmq.NOBLOCK)
            except (ValueError, TypeError, KeyError):
                continue  # not written by the kernel itself
            if message is None:
                break
            found.append(message)
        return found

    def is_alive(self):
        return self.process.poll() is None

    def signal(self, number):
        """Sends a signal to the kernel and to what it runs."""
        if self.is_alive():
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass

    def interrupt(self):
        self.signal(signal.SIGINT)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """Ends the kernel. Who uses it sees that it is not alive."""
        self.killed = True
        self.signal(signal.SIGKILL)

    def close(self):
        """Frees what a kernel that was killed or died had."""
        self.process.wait()
        for socket in self.sockets.values():
            socket.close()
        shutil.rmtree(self.dir, ignore_errors=True)
