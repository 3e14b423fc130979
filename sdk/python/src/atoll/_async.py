"""The same for asyncio: every call waits in a thread, so that the loop goes on."""

from __future__ import annotations

import asyncio
import functools
from typing import IO, Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union, overload

from ._cancel import Call
from ._client import Client, Response
from ._files import Change, FileInfo, Files
from ._process import Output, Process
from ._results import Metrics, Result, SandboxInfo, Template
from ._sandbox import Command, Port, Sandbox, Writer
from ._terminal import Terminal

T = TypeVar("T")


async def _wait(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return what a call returns. When the task is cancelled, so is the request that the call waits for."""
    waiting = Call()
    bound: Callable[[], T] = functools.partial(call, *args, **kwargs)
    future = asyncio.get_running_loop().run_in_executor(None, lambda: waiting.run(bound))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        waiting.cancel()
        await asyncio.wait({future})
        future.exception()  # it was cancelled: how it ended does not matter
        raise


class _End:
    """What follows the last item."""


_END = _End()


async def _each(items: Iterator[T]) -> AsyncIterator[T]:
    try:
        while True:
            item: Union[T, _End] = await _wait(next, items, _END)
            if isinstance(item, _End):
                return
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            await _wait(close)


class AsyncFiles:
    """Files, for asyncio."""

    def __init__(self, files: Files) -> None:
        self._files = files

    async def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return await _wait(self._files.read, path)

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """Return the content of a file as text."""
        return await _wait(self._files.read_text, path, encoding)

    def read_chunks(self, path: str, *, offset: int = 0) -> AsyncIterator[bytes]:
        """Yield the content of a file, from an offset on, as it comes."""
        return _each(self._files.read_chunks(path, offset=offset))

    async def write(self, path: str, content: Union[str, bytes, IO[bytes]], *, mode: Optional[int] = None, exclusive: bool = False) -> FileInfo:
        """Write a file as a whole."""
        return await _wait(self._files.write, path, content, mode=mode, exclusive=exclusive)

    async def list(self, path: str = ".") -> List[FileInfo]:
        """Return what is in a directory."""
        return await _wait(self._files.list, path)

    async def stat(self, path: str) -> FileInfo:
        """Describe a file."""
        return await _wait(self._files.stat, path)

    async def exists(self, path: str) -> bool:
        """Tell whether there is a file."""
        return await _wait(self._files.exists, path)

    async def move(self, source: str, target: str, *, exclusive: bool = False) -> FileInfo:
        """Move a file or a directory."""
        return await _wait(self._files.move, source, target, exclusive=exclusive)

    async def mkdir(self, path: str) -> FileInfo:
        """Make a directory."""
        return await _wait(self._files.mkdir, path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file or a directory."""
        await _wait(self._files.remove, path, recursive=recursive)

    def watch(self, path: str = ".", *, recursive: bool = False) -> AsyncIterator[Change]:
        """Yield the changes in a directory."""
        return _each(self._files.watch(path, recursive=recursive))

    async def upload(self, source: str, target: str = ".") -> Dict[str, Any]:
        """Send a directory of this machine."""
        return await _wait(self._files.upload, source, target)

    async def download(self, source: str, target: str) -> None:
        """Copy a file or directory into a directory of this machine."""
        await _wait(self._files.download, source, target)


class AsyncPort:
    """Port, for asyncio."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self.url, self.headers = port.url, port.headers

    async def fetch(self, path: str = "/", *, method: str = "GET", headers: Optional[Mapping[str, str]] = None, body: Union[None, str, bytes] = None, limit: int = 64 << 20) -> Response:
        """Send a request to the port."""
        return await _wait(self._port.fetch, path, method=method, headers=headers, body=body, limit=limit)


class AsyncTerminal:
    """Terminal, for asyncio."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    @property
    def offset(self) -> int:
        """Bytes that it showed so far: where another goes on."""
        return self._terminal.offset

    @property
    def result(self) -> Optional[Result]:
        """How the process ended, once output has."""
        return self._terminal.result

    def output(self) -> AsyncIterator[bytes]:
        """Yield what it shows until the process ends."""
        return _each(self._terminal.output())

    async def write(self, data: Union[str, bytes]) -> None:
        """Type."""
        await _wait(self._terminal.write, data)

    async def resize(self, rows: int, cols: int) -> None:
        """Set its size."""
        await _wait(self._terminal.resize, rows, cols)

    async def close(self) -> None:
        """Leave it. The process goes on."""
        await _wait(self._terminal.close)

    async def __aenter__(self) -> "AsyncTerminal":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncProcess:
    """Process, for asyncio."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.id, self.pid, self.command = process.id, process.pid, process.command

    async def running(self) -> bool:
        """Whether it has not ended yet."""
        return await _wait(lambda: self._process.running)

    @overload
    async def wait(self, timeout: None = None) -> Result: ...

    @overload
    async def wait(self, timeout: float) -> Optional[Result]: ...

    async def wait(self, timeout: Optional[float] = None) -> Optional[Result]:
        """Return how it ended."""
        return await _wait(lambda: self._process.wait() if timeout is None else self._process.wait(timeout))

    def output(self, *, after: Optional[str] = None) -> AsyncIterator[Output]:
        """Yield what it writes, from the beginning or after an output."""
        return _each(self._process.output(after=after))

    async def write(self, data: Union[str, bytes], *, end: bool = False) -> None:
        """Write to its standard input."""
        await _wait(self._process.write, data, end=end)

    async def close_stdin(self) -> None:
        """Close its standard input."""
        await _wait(self._process.close_stdin)

    async def signal(self, name: str, *, tree: bool = False) -> None:
        """Send a signal."""
        await _wait(self._process.signal, name, tree=tree)

    async def terminal(self, *, offset: int = 0) -> AsyncTerminal:
        """Show its terminal, from the beginning or an offset on."""
        return AsyncTerminal(await _wait(self._process.terminal, offset=offset))

    async def kill(self) -> None:
        """End it and forget it."""
        await _wait(self._process.kill)


class AsyncSandbox:
    """Sandbox, for asyncio. Make one with `await AsyncSandbox.create(…)` or `async with AsyncSandbox(…) as box`.

    The arguments are those of Sandbox.
    """

    def __init__(self, **arguments: Any) -> None:
        self._arguments = arguments
        self._box: Optional[Sandbox] = None

    @classmethod
    async def create(cls, **arguments: Any) -> "AsyncSandbox":
        """Make a sandbox and start it."""
        return await cls(**arguments)._made()

    async def _made(self) -> "AsyncSandbox":
        self._box = await _wait(Sandbox, **self._arguments)
        return self

    @classmethod
    def _of(cls, box: Sandbox) -> "AsyncSandbox":
        found = cls()
        found._box = box
        return found

    @classmethod
    async def connect(cls, box_id: str, *, client: Optional[Client] = None) -> "AsyncSandbox":
        """Return a sandbox that was made before."""
        return cls._of(await _wait(Sandbox.connect, box_id, client=client))

    @classmethod
    def list(cls, *, metadata: Optional[Mapping[str, str]] = None, state: Optional[str] = None, client: Optional[Client] = None) -> AsyncIterator[SandboxInfo]:
        """Yield the sandboxes that programs made."""
        return _each(Sandbox.list(metadata=metadata, state=state, client=client))

    @classmethod
    async def templates(cls, *, client: Optional[Client] = None) -> List[Template]:
        """Return the templates that sandboxes can begin with."""
        return await _wait(Sandbox.templates, client=client)

    @classmethod
    async def remove_template(cls, name: str, *, client: Optional[Client] = None) -> None:
        """Remove a template."""
        await _wait(Sandbox.remove_template, name, client=client)

    async def __aenter__(self) -> "AsyncSandbox":
        return await self._made()

    async def __aexit__(self, *_: object) -> None:
        await self.remove()

    @property
    def _sandbox(self) -> Sandbox:
        if self._box is None:
            raise RuntimeError("use `async with`, or AsyncSandbox.create")
        return self._box

    @property
    def id(self) -> str:
        """What its paths are called by."""
        return self._sandbox.id

    @property
    def name(self) -> str:
        """Its name on the command line of atoll."""
        return self._sandbox.name

    @property
    def files(self) -> AsyncFiles:
        """Its files."""
        return AsyncFiles(self._sandbox.files)

    async def info(self) -> SandboxInfo:
        """Return how it is now."""
        return await _wait(self._sandbox.info)

    async def run(self, command: Command, *, env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, stdin: Union[None, str, bytes] = None, timeout: Optional[float] = None, check: bool = False, on_stdout: Optional[Writer] = None, on_stderr: Optional[Writer] = None) -> Result:
        """Run a command and wait for its end. The writers are called in a thread."""
        return await _wait(self._sandbox.run, command, env=env, cwd=cwd, stdin=stdin, timeout=timeout, check=check, on_stdout=on_stdout, on_stderr=on_stderr)

    async def start(self, command: Command, *, env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, timeout: Optional[float] = None, stdin: bool = False, terminal: Optional[Tuple[int, int]] = None) -> AsyncProcess:
        """Start a command in the background."""
        return AsyncProcess(await _wait(self._sandbox.start, command, env=env, cwd=cwd, timeout=timeout, stdin=stdin, terminal=terminal))

    async def processes(self) -> List[AsyncProcess]:
        """Return the commands in the background."""
        return [AsyncProcess(process) for process in await _wait(self._sandbox.processes)]

    async def process(self, process_id: str) -> AsyncProcess:
        """Return a command in the background that was started before."""
        return AsyncProcess(await _wait(self._sandbox.process, process_id))

    def port(self, number: int) -> AsyncPort:
        """Return where a server at a port of the sandbox is reached."""
        return AsyncPort(self._sandbox.port(number))

    async def metrics(self) -> Metrics:
        """Return what it uses."""
        return await _wait(self._sandbox.metrics)

    async def extend(self, seconds: int) -> SandboxInfo:
        """Move its deadline."""
        return await _wait(self._sandbox.extend, seconds)

    async def stop(self) -> None:
        """Stop it."""
        await _wait(self._sandbox.stop)

    async def resume(self) -> None:
        """Start it again."""
        await _wait(self._sandbox.resume)

    async def fork(self, *, timeout: int = 300, metadata: Optional[Mapping[str, str]] = None) -> "AsyncSandbox":
        """Make a sandbox with the files of this one."""
        return self._of(await _wait(self._sandbox.fork, timeout=timeout, metadata=metadata))

    async def snapshot(self, name: str) -> Template:
        """Keep its files as a template."""
        return await _wait(self._sandbox.snapshot, name)

    async def remove(self) -> None:
        """End it and remove it with its files."""
        await _wait(self._sandbox.remove)



