"""Terminals of processes."""

from __future__ import annotations

import json
from typing import Iterator, Optional, Union

from ._errors import AtollError
from ._results import Result
from ._websocket import WebSocket

# _CHUNK is how many bytes a message has; the gateway takes 64 KiB.
_CHUNK = 32 << 10


class Terminal:
    """The terminal of a process. To close it ends nothing: Process.terminal(offset=…) goes on."""

    def __init__(self, socket: WebSocket, offset: int) -> None:
        self._socket = socket
        self.offset = offset
        """Bytes that it showed so far: where another goes on."""
        self.result: Optional[Result] = None
        """How the process ended, once output has."""

    def output(self) -> Iterator[bytes]:
        """Yield what it shows until the process ends. The process waits for a reader that is slow."""
        while True:
            message = self._socket.receive()
            if message is None:
                if self.result is not None:
                    return
                raise AtollError({"code": "terminal_closed", "detail": "the terminal was closed before the process ended"})
            text, data = message
            if text:
                self._take(data)
            else:
                self.offset += len(data)
                yield data

    def _take(self, data: bytes) -> None:
        event = json.loads(data)
        if event["type"] == "lost":
            self.offset += event.get("bytes", 0)
        elif event["type"] == "ended":
            self.result = Result.of(event["result"])

    def write(self, data: Union[str, bytes]) -> None:
        """Type."""
        raw = data.encode() if isinstance(data, str) else data
        for at in range(0, len(raw), _CHUNK):
            self._socket.send(raw[at : at + _CHUNK])

    def resize(self, rows: int, cols: int) -> None:
        """Set its size."""
        self._socket.send(json.dumps({"resize": {"rows": rows, "cols": cols}}))

    def close(self) -> None:
        """Leave it. The process goes on."""
        self._socket.close()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
