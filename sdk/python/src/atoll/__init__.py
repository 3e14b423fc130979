"""Sandboxes of Atoll for Python programs, with the standard library alone.

    from atoll import Sandbox
    with Sandbox() as box:
        print(box.run("python3 -c 'print(6*7)'").stdout)
"""

from ._async import AsyncFiles, AsyncProcess, AsyncSandbox
from ._client import Client
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
from ._process import Process
from ._results import Metrics, Result, SandboxInfo, Template
from ._sandbox import Port, Sandbox

__all__ = [
    "AsyncFiles",
    "AsyncProcess",
    "AsyncSandbox",
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
    "Port",
    "Process",
    "Result",
    "Sandbox",
    "SandboxInfo",
    "Template",
    "UnreachableError",
]
