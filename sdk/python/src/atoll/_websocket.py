"""The client's end of a WebSocket (RFC 6455), without extensions."""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import socket
import struct
import threading
from typing import Dict, List, Optional, Tuple, Union

from ._cancel import waits_for
from ._errors import AtollError, UnreachableError

# _MAX_MESSAGE is how many bytes a message of the gateway may have.
_MAX_MESSAGE = 16 << 20
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


def handshake() -> Tuple[Dict[str, str], str]:
    """Return the headers of a request for a WebSocket, and what its answer must have."""
    key = base64.b64encode(os.urandom(16)).decode()
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}, accept


class WebSocket:
    """A connection whose handshake is done. One thread may receive while others send."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> None:
        self._reader = response.fp  # it may have read beyond the answer
        self._connection = connection
        self._sending = threading.Lock()

    def receive(self) -> Optional[Tuple[bool, bytes]]:
        """Return the next message, and whether it is text; None when the other end has closed."""
        parts: List[bytes] = []
        text, size = False, 0
        while True:
            last, code, data = self._frame(_MAX_MESSAGE - size)
            if code == _CLOSE:
                self.close()
                return None
            if code == _PING:
                self._send(_PONG, data)
            if code >= _CLOSE:
                continue
            if (code == _CONTINUATION) != bool(parts):
                raise _broken("a message begins within another")
            if not parts:
                text = code == _TEXT
            parts.append(data)
            size += len(data)
            if last:
                return text, b"".join(parts)

    def _frame(self, most: int) -> Tuple[bool, int, bytes]:
        first, second = self._exactly(2)
        if first & 0x70 or second & 0x80:
            raise _broken("a frame is wrong")
        size = second
        if second == 126:
            (size,) = struct.unpack("!H", self._exactly(2))
        elif second == 127:
            (size,) = struct.unpack("!Q", self._exactly(8))
        if size > most:
            raise _broken("a message is too long")
        return bool(first & 0x80), first & 0x0F, self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        waits_for(self._connection)
        try:
            data = self._reader.read(size)
        except (OSError, ValueError) as err:  # ValueError: it was closed here
            raise UnreachableError(f"the connection to the gateway broke: {err}") from err
        finally:
            waits_for(None)
        if len(data) < size:
            raise _broken("it ends in the middle")
        return data

    def send(self, data: Union[str, bytes]) -> None:
        """Send a message."""
        if isinstance(data, str):
            self._send(_TEXT, data.encode())
        else:
            self._send(_BINARY, data)

    def _send(self, code: int, data: bytes) -> None:
        if len(data) >= 1 << 16:
            raise ValueError("a message of a client is at most 65,535 bytes")
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack("!H", len(data))
        mask = os.urandom(4)
        pad = (mask * (len(data) // 4 + 1))[: len(data)]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")
        with self._sending:
            if self._connection.sock is None:
                raise UnreachableError("the connection to the gateway is closed")
            try:
                self._connection.sock.sendall(bytes([0x80 | code]) + size + mask + masked)
            except OSError as err:
                raise UnreachableError(f"the connection to the gateway broke: {err}") from err

    def close(self) -> None:
        """Close it."""
        try:
            self._send(_CLOSE, struct.pack("!H", 1000))
        except AtollError:
            pass  # it is closed
        if self._connection.sock is not None:
            try:
                self._connection.sock.shutdown(socket.SHUT_RDWR)  # who waits for a message is told
            except OSError:
                pass
        self._connection.close()  # with the answer, and so the reader


def _broken(why: str) -> AtollError:
    return AtollError({"code": "bad_websocket", "detail": f"what the gateway sends is refused: {why}"})
