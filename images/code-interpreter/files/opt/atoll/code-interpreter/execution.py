"""One execution: code goes to a kernel, what it publishes goes to a client."""

import socket
import time

import events
from limits import MAX_VARIABLES, PAUSE_AT, RESUME_AT, STALL_SECONDS, Refusal

TURN = 0.2  # seconds between looks at the client and the kernel's process
READ, WRITE = 1, 2  # as zmq.POLLIN and POLLOUT


class Gone(Exception):
    """The client went away, or takes nothing any more."""


class Stream:
    """Chunks on the way to a client. What it did not take yet is counted."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = bytearray()
        self.took = time.monotonic()
        self.watching = True

    def add(self, line):
        self.buffer += b"%x\r\n%s\r\n" % (len(line), line)

    def advance(self, ready):
        """Writes what the connection takes."""
        if ready & READ and self.watching:
            self._look()
        if ready & WRITE and self.buffer:
            self._write()
        if not self.buffer:
            self.took = time.monotonic()
        elif time.monotonic() - self.took > STALL_SECONDS:
            raise Gone

    def _write(self):
        try:
            sent = self.connection.send(memoryview(self.buffer)[: 1 << 18], socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError as e:
            raise Gone from e
        del self.buffer[:sent]
        self.took = time.monotonic()

    def _look(self):
        """Finds out whether the client closed its end."""
        try:
            if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise Gone
            self.watching = False  # it sends the next request already
        except BlockingIOError:
            pass
        except OSError as e:
            raise Gone from e


def variables_of(value):
    """Returns the variables of a request."""
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_VARIABLES:
        raise Refusal(400, f"env_vars must be an object with at most {MAX_VARIABLES} members")
    for name, text in value.items():
        if not name or "=" in name or "\0" in name or not isinstance(text, str) or "\0" in text:
            raise Refusal(400, f"env_vars: {name!r:.100} is not a variable with a text")
    return value


def set_code(variables):
    return f"__import__('os').environ.update({variables!r})"


def reset_code(variables, base):
    """Returns the code after which variables are what the kernel was started with."""
    before = {name: base[name] for name in variables if name in base}
    return f"[__import__('os').environ.pop(name, None) for name in {list(variables)!r}]; {set_code(before)}"


class Execution:
    """An execution in a context whose lock is held."""

    def __init__(self, context, stream):
        self.context = context
        self.kernel = context.kernel
        self.stream = stream
        self.paused = False

    def run(self, code, variables):
        """Streams the events of code. The kernel is interrupted when the client goes."""
        if not self.kernel.is_alive():
            return self._told()
        if variables:
            self.kernel.execute(set_code(variables), silent=True)
        request = self.kernel.execute(code)
        try:
            self._follow(request)
        except Gone:
            self._pause(False)
            self.kernel.interrupt()
            raise
        finally:
            self._pause(False)
            if variables and self.kernel.is_alive():
                self.kernel.execute(reset_code(variables, self.kernel.base), silent=True)

    def _follow(self, request):
        done = False
        while not done:
            alive = self.kernel.is_alive()
            messages, ready = self.kernel.wait(request, int(TURN * 1000), self._client(), bool(self.stream.buffer))
            for message in messages:
                event = events.of_message(message)
                if event is not None:
                    self.stream.add(events.line(event))
                done = done or events.is_idle(message)
            self.stream.advance(ready)
            self._hold()
            if not alive and not messages and not done:
                return self._told()

    def _client(self):
        """Returns the connection, if there is something to learn of it."""
        return self.stream.connection if self.stream.watching or self.stream.buffer else None

    def _hold(self):
        """Pauses the kernel while the client is far behind."""
        waiting = len(self.stream.buffer)
        if waiting > PAUSE_AT or (self.paused and waiting < RESUME_AT):
            self._pause(waiting > PAUSE_AT)

    def _pause(self, paused):
        if paused != self.paused:
            self.paused = paused
            self.kernel.pause() if paused else self.kernel.resume()

    def _told(self):
        """Says that the kernel ended. The next execution has another one."""
        if self.kernel.killed:
            self.stream.add(events.line(events.error("ContextRestarted", "the context was restarted or deleted")))
            return
        how = self.kernel.process.poll()
        said = f"the kernel ended (exit status {how}); its variables are lost, the next execution has a new one"
        self.stream.add(events.line(events.error("KernelDied", said)))
        self.context.renew()
