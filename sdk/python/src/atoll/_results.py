"""What the gateway answers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, Mapping, Optional


def moment(text: Optional[str]) -> Optional[datetime]:
    """Return a time of the gateway, which has up to nine digits of a second."""
    if not text:
        return None
    text = re.sub(r"\.(\d{1,6})\d*", lambda found: "." + found.group(1).ljust(6, "0"), text.replace("Z", "+00:00"))
    return datetime.fromisoformat(text)


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    signal: str = ""
    timed_out: bool = False
    oom: bool = False
    error: str = ""
    stdout_lost: int = 0
    stderr_lost: int = 0
    duration_ms: int = 0

    @property
    def ok(self) -> bool:
        """Whether the command succeeded."""
        return self.exit_code == 0

    @classmethod
    def of(cls, raw: Mapping[str, Any], stdout: Optional[str] = None, stderr: Optional[str] = None) -> "Result":
        return cls(
            raw["exitCode"], raw.get("stdout", "") if stdout is None else stdout, raw.get("stderr", "") if stderr is None else stderr, raw.get("signal", ""), raw.get("timedOut", False),
            raw.get("oom", False), raw.get("error", ""), raw.get("stdoutLost", 0), raw.get("stderrLost", 0), raw.get("durationMs", 0),
        )


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the gateway sees it."""

    id: str
    name: str
    state: str
    running: bool
    image: str = ""
    account: str = ""
    template: str = ""
    workdir: str = ""
    metadata: Dict[str, str] = field(default_factory=dict)
    deadline: Optional[datetime] = None
    on_deadline: str = ""
    port_token: str = field(default="", repr=False)

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "SandboxInfo":
        return cls(
            raw.get("id", ""), raw["containerName"], raw.get("state", ""), raw.get("running", False), raw.get("image", ""), raw.get("account", ""), raw.get("template", ""),
            raw.get("workdir", ""), dict(raw.get("metadata") or {}), moment(raw.get("deadline")), raw.get("onDeadline", ""), raw.get("portToken", ""),
        )


@dataclass(frozen=True)
class Metrics:
    """What a sandbox uses. Limits are 0 where there is none."""

    at: Optional[datetime]
    cpu_ms: int
    cpus: float
    memory_bytes: int
    memory_limit_bytes: int
    processes: int
    processes_limit: int
    workspace_bytes: int
    workspace_limit_bytes: int
    workspace_files: int

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Metrics":
        names = ("cpuMs", "cpus", "memoryBytes", "memoryLimitBytes", "processes", "processesLimit", "workspaceBytes", "workspaceLimitBytes", "workspaceFiles")
        return cls(moment(raw.get("at")), *(raw.get(name, 0) for name in names))


@dataclass(frozen=True)
class Template:
    """The files of a sandbox at one moment, which others can begin with."""

    name: str
    account: str = ""
    image: str = ""
    created: Optional[datetime] = None

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "Template":
        return cls(raw["name"], raw.get("account", ""), raw.get("image", ""), moment(raw.get("created")))
