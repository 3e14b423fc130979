"""Commands in the background of a sandbox."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional, Union, overload

from ._client import Client, path_of
from ._errors import error_of
from ._results import Result
from ._terminal import Terminal


@dataclass(frozen=True)
class Output:
    """What a process wrote to "stdout" or "stderr"."""

    stream: str
    data: bytes
    lost: int
    """Bytes before it that are not kept any more."""
    id: str
    """Where output(after=…) goes on."""


class Process:
    """A command that goes on until it ends or its sandbox does."""

    def __init__(self, client: Client, box_id: str, raw: Mapping[str, Any]) -> None:
        self._client = client
        self._box = box_id
        self.id: str = raw["id"]
        self.pid: int = raw["pid"]
        self.command: str = raw.get("command", "")

    def _at(self, *parts: str) -> str:
        return path_of(self._box, "processes", self.id, *parts)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return bool(self._client.call("GET", self._at())["running"])

    @overload
    def wait(self, timeout: None = None) -> Result: ...

    @overload
    def wait(self, timeout: float) -> Optional[Result]: ...

    def wait(self, timeout: Optional[float] = None) -> Optional[Result]:
        """Return how it ended, with what is kept of its output; None if the time is over first."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 60.0 if until is None else until - time.monotonic()
            raw = self._client.call("GET", self._at(), query={"waitSeconds": max(1, min(60, int(left)))})
            if not raw["running"]:
                output = self._client.call("GET", self._at("output"))
                return Result.of(raw["result"], _text(output["stdout"]), _text(output["stderr"]))
            if until is not None and time.monotonic() >= until:
                return None

    def output(self, *, after: Optional[str] = None) -> Iterator[Output]:
        """Yield what it writes until it ends, from the beginning or after an output. It waits for a reader that is slow."""
        headers = {"Last-Event-ID": after} if after else {}
        for name, data, mark in self._client.events("GET", self._at("output"), headers=headers):
            if name in ("stdout", "stderr"):
                yield Output(name, base64.b64decode(data["data"]), data.get("lost", 0), mark)
            elif name == "problem":
                raise error_of(data)
            elif name == "ended":
                return

    def write(self, data: Union[str, bytes], *, end: bool = False) -> None:
        """Write to its standard input, and close that with end=True."""
        raw = data.encode() if isinstance(data, str) else data
        self._client.call("POST", self._at("input"), body={"data": base64.b64encode(raw).decode(), "end": end})

    def close_stdin(self) -> None:
        """Close its standard input."""
        self._client.call("POST", self._at("input"), body={"end": True})

    def signal(self, name: str, *, tree: bool = False) -> None:
        """Send a signal such as SIGINT, with tree=True to its descendants too."""
        self._client.call("POST", self._at("signal"), body={"signal": name, "tree": tree})

    def terminal(self, *, offset: int = 0) -> Terminal:
        """Show its terminal, if it was started with one, from the beginning or an offset on."""
        return Terminal(self._client.web_socket(self._at("terminal"), query={"offset": offset}), offset)

    def kill(self) -> None:
        """End it with its descendants and forget it."""
        self._client.call("DELETE", self._at())


def _text(encoded: Optional[str]) -> str:
    return base64.b64decode(encoded or "").decode("utf-8", "replace")
