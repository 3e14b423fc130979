"""Sandboxes of Atoll for Python programs, with the standard library alone.

    from atoll import Sandbox
    with Sandbox() as box:
        print(box.run("python3 -c 'print(6*7)'").stdout)
"""

from ._async import AsyncFiles, AsyncPort, AsyncProcess, AsyncSandbox, AsyncTerminal
from ._client import Client, Response
from ._errors import (
    AtollError,
    CommandError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    UnreachableError,
)
from ._files import Change, FileInfo, Files
from ._process import Output, Process
from ._results import Metrics, Result, SandboxInfo, Template
from ._sandbox import Port, Sandbox
from ._terminal import Terminal

__all__ = [
    "AsyncFiles",
    "AsyncPort",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncTerminal",
    "AtollError",
    "Change",
    "Client",
    "CommandError",
    "ConflictError",
    "FileInfo",
    "Files",
    "ForbiddenError",
    "InvalidRequestError",
    "LimitError",
    "Metrics",
    "NotFoundError",
    "Output",
    "Port",
    "Process",
    "Response",
    "Result",
    "Sandbox",
    "SandboxInfo",
    "Template",
    "Terminal",
    "UnreachableError",
]
