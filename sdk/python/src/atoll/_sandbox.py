"""Sandboxes."""

from __future__ import annotations

import base64
import codecs
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._client import Client, Response, path_of, without_none
from ._errors import AtollError, CommandError, NotFoundError, error_of
from ._files import Files
from ._process import Process
from ._results import Metrics, Result, SandboxInfo, Template

Command = Union[str, Sequence[str]]
Writer = Callable[[str], None]


class Port:
    """A port of a sandbox: where requests go, through a gateway that has a URL, and the headers that they need."""

    def __init__(self, client: Client, url: str, headers: Dict[str, str]) -> None:
        self._client = client
        self.url = url
        self.headers = headers

    def fetch(self, path: str = "/", *, method: str = "GET", headers: Optional[Mapping[str, str]] = None, body: Union[None, str, bytes] = None, limit: int = 64 << 20) -> Response:
        """Send a request to the port, through the gateway's own address or its socket, so that no name has to be resolved."""
        content = body.encode() if isinstance(body, str) else body
        return self._client.fetch(method, path, headers={**(headers or {}), **self.headers}, content=content, limit=limit)


class Sandbox:
    """A sandbox of its own: made when the object is, and removed when it is closed, at the latest at its deadline.

    What is left out is as the gateway has it configured. git is the URL of a repository
    that is cloned inside, copy a directory of this machine whose files are sent; egress
    are the names that it reaches.
    """

    def __init__(
        self,
        *,
        image: Optional[str] = None,
        template: Optional[str] = None,
        git: Optional[str] = None,
        ref: Optional[str] = None,
        copy: Optional[str] = None,
        egress: Optional[Sequence[str]] = None,
        env: Optional[Mapping[str, str]] = None,
        metadata: Optional[Mapping[str, str]] = None,
        timeout: int = 300,
        on_deadline: Optional[str] = None,
        memory: Optional[int] = None,
        cpus: Optional[float] = None,
        processes: Optional[int] = None,
        account: Optional[str] = None,
        client: Optional[Client] = None,
    ) -> None:
        limits = without_none({"memoryBytes": memory, "cpus": cpus, "processes": processes})
        request = without_none(
            {
                "image": image,
                "template": template,
                "workspace": without_none({"git": git, "ref": ref}) if git or ref else None,
                "egress": None if egress is None else {"allow": list(egress)},
                "env": None if env is None else dict(env),
                "metadata": None if metadata is None else dict(metadata),
                "timeoutSeconds": timeout,
                "onDeadline": on_deadline,
                "limits": limits or None,
                "account": account,
            }
        )
        client = client or _shared_client()
        self._open(client, client.call("POST", path_of(), body=request))
        if copy is not None:
            try:
                self.files.upload(copy)
            except BaseException:
                self.remove()
                raise

    def _open(self, client: Client, raw: Mapping[str, Any]) -> None:
        self._client = client
        self._info = SandboxInfo.of(raw)
        self.files = Files(client, self.id)

    @classmethod
    def _of(cls, client: Client, raw: Mapping[str, Any]) -> "Sandbox":
        box = cls.__new__(cls)
        box._open(client, raw)
        return box

    @classmethod
    def connect(cls, box_id: str, *, client: Optional[Client] = None) -> "Sandbox":
        """Return a sandbox that was made before, by its id or its name."""
        client = client or _shared_client()
        raw = client.call("GET", path_of(box_id))
        if not raw.get("id"):
            raise NotFoundError({"status": 404, "code": "sandbox_not_found", "detail": f"{box_id} was not made by a program"})
        return cls._of(client, raw)

    @classmethod
    def list(cls, *, metadata: Optional[Mapping[str, str]] = None, state: Optional[str] = None, client: Optional[Client] = None) -> Iterator[SandboxInfo]:
        """Yield the sandboxes that programs made, the last made first."""
        client = client or _shared_client()
        wanted: List[str] = [f"{name}={value}" for name, value in (metadata or {}).items()]
        cursor: Optional[str] = None
        while True:
            page = client.call("GET", path_of(), query={"made": True, "order": "created", "limit": 100, "metadata": wanted, "state": state, "cursor": cursor})
            yield from (SandboxInfo.of(raw) for raw in page["sandboxes"])
            cursor = page.get("next")
            if not cursor:
                return

    @classmethod
    def templates(cls, *, client: Optional[Client] = None) -> List[Template]:
        """Return the templates that sandboxes can begin with."""
        return [Template.of(raw) for raw in (client or _shared_client()).call("GET", "/api/v1/templates")["templates"]]

    @classmethod
    def remove_template(cls, name: str, *, client: Optional[Client] = None) -> None:
        """Remove a template."""
        (client or _shared_client()).call("DELETE", "/api/v1/templates/" + name)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"Sandbox({self.id!r})"

    @property
    def id(self) -> str:
        """What its paths are called by."""
        return self._info.id

    @property
    def name(self) -> str:
        """Its name on the command line of atoll."""
        return self._info.name

    def info(self) -> SandboxInfo:
        """Return how it is now."""
        self._info = SandboxInfo.of(self._client.call("GET", path_of(self.id)))
        return self._info

    def run(
        self,
        command: Command,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Union[None, str, bytes] = None,
        timeout: Optional[float] = None,
        check: bool = False,
        on_stdout: Optional[Writer] = None,
        on_stderr: Optional[Writer] = None,
    ) -> Result:
        """Run a command and wait for its end: a line for the shell, or a program and its arguments.

        With on_stdout or on_stderr these are called with what it writes, as it comes. With
        check=True a command that fails is a CommandError.
        """
        body = _command(command, env, cwd, timeout)
        if stdin is not None:
            body["stdin"] = base64.b64encode(stdin.encode() if isinstance(stdin, str) else stdin).decode()
        if on_stdout or on_stderr:
            result = self._follow(body, on_stdout, on_stderr)
        else:
            result = Result.of(self._client.call("POST", path_of(self.id, "exec"), body=body))
        if check and not result.ok:
            raise CommandError(result)
        return result

    def _follow(self, body: Mapping[str, Any], on_stdout: Optional[Writer], on_stderr: Optional[Writer]) -> Result:
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        tell = {"stdout": on_stdout, "stderr": on_stderr}
        said: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        for name, data, _ in self._client.events("POST", path_of(self.id, "exec"), body=body):
            if name in said:
                text = decoders[name].decode(base64.b64decode(data["data"]))
                writer = tell[name]
                if writer:
                    writer(text)
                else:
                    said[name].append(text)
            elif name == "problem":
                raise error_of(data)
            elif name == "ended":
                return Result.of(data, "".join(said["stdout"]), "".join(said["stderr"]))
        raise AtollError({"code": "stream_ended", "detail": "the stream of the command ended before the command"})

    def start(self, command: Command, *, env: Optional[Mapping[str, str]] = None, cwd: Optional[str] = None, timeout: Optional[float] = None, stdin: bool = False, terminal: Optional[Tuple[int, int]] = None) -> Process:
        """Start a command in the background: with stdin=True one that can be written to, with terminal=(rows, cols) at a terminal."""
        body = _command(command, env, cwd, timeout)
        body["stdin"] = stdin
        if terminal is not None:
            body["terminal"] = {"rows": terminal[0], "cols": terminal[1]}
        return Process(self._client, self.id, self._client.call("POST", path_of(self.id, "processes"), body=body))

    def processes(self) -> List[Process]:
        """Return the commands in the background."""
        return [Process(self._client, self.id, raw) for raw in self._client.call("GET", path_of(self.id, "processes"))["processes"]]

    def process(self, process_id: str) -> Process:
        """Return a command in the background that was started before."""
        return Process(self._client, self.id, self._client.call("GET", path_of(self.id, "processes", process_id)))

    def port(self, number: int) -> Port:
        """Return where a server at a port of the sandbox is reached."""
        url, host = self._client.port_address(number, self.id)
        return Port(self._client, url, {"Host": host, "Atoll-Port-Token": self._info.port_token})

    def metrics(self) -> Metrics:
        """Return what it uses."""
        return Metrics.of(self._client.call("GET", path_of(self.id, "metrics")))

    def extend(self, seconds: int) -> SandboxInfo:
        """Move its deadline to so many seconds from now."""
        self._info = SandboxInfo.of(self._client.call("POST", path_of(self.id, "extend"), body={"timeoutSeconds": seconds}))
        return self._info

    def stop(self) -> None:
        """Stop it with all its commands. Its files stay."""
        self._client.call("POST", path_of(self.id, "stop"))

    def resume(self) -> None:
        """Start it again after stop."""
        self._client.call("POST", path_of(self.id, "start"))

    def fork(self, *, timeout: int = 300, metadata: Optional[Mapping[str, str]] = None) -> "Sandbox":
        """Make a sandbox with the files of this one, as they are now."""
        body = {"timeoutSeconds": timeout, "metadata": dict(metadata or {})}
        return self._of(self._client, self._client.call("POST", path_of(self.id, "fork"), body=body))

    def snapshot(self, name: str) -> Template:
        """Keep its files as a template."""
        return Template.of(self._client.call("POST", path_of(self.id, "snapshots"), body={"name": name}))

    def remove(self) -> None:
        """End it, whatever is done in it, and remove it with its files. One that is gone is no error."""
        try:
            self._client.call("DELETE", path_of(self.id))
        except NotFoundError:
            pass


def _command(command: Command, env: Optional[Mapping[str, str]], cwd: Optional[str], timeout: Optional[float]) -> Dict[str, Any]:
    body: Dict[str, Any] = {"command": command} if isinstance(command, str) else {"argv": list(command)}
    body.update(without_none({"env": None if env is None else dict(env), "dir": cwd, "timeoutSeconds": timeout}))
    return body


_default: Optional[Client] = None


def _shared_client() -> Client:
    """Return the client of programs that name none."""
    global _default
    if _default is None:
        _default = Client()
    return _default
