"""Calls that wait in a thread, and can be ended from another."""

from __future__ import annotations

import http.client
import socket
import threading
from typing import Callable, Optional, TypeVar

from ._errors import AtollError

T = TypeVar("T")

_current = threading.local()


class Call:
    """A call in a thread. To cancel it shuts down the connection that it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Optional[http.client.HTTPConnection] = None
        self._cancelled = False

    def run(self, call: Callable[[], T]) -> T:
        """Make a call, in the thread that waits for it."""
        _current.call = self
        try:
            return call()
        finally:
            _current.call = None

    def cancel(self) -> None:
        """End the call: what it waits for fails."""
        with self._lock:
            self._cancelled = True
            if self._connection is not None and self._connection.sock is not None:
                try:
                    self._connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended by itself

    def wait_for(self, connection: Optional[http.client.HTTPConnection]) -> None:
        with self._lock:
            if self._cancelled and connection is not None:
                raise AtollError({"code": "cancelled", "detail": "the call was cancelled"})
            self._connection = connection


def waits_for(connection: Optional[http.client.HTTPConnection]) -> None:
    """Say that the call of this thread waits for a connection, or for none any more."""
    call: Optional[Call] = getattr(_current, "call", None)
    if call is not None:
        call.wait_for(connection)
