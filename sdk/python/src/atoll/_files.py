"""The files of a sandbox."""

from __future__ import annotations

import http.client
import io
import json
import os
import tarfile
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any, Dict, Iterator, List, Mapping, Optional, Union

from ._cancel import waits_for
from ._client import Client, path_of
from ._errors import NotFoundError, UnreachableError, error_of
from ._results import moment

_CHUNK = 1 << 20


@dataclass(frozen=True)
class FileInfo:
    """A file, directory or link."""

    path: str
    kind: str
    size: int
    mode: int
    modified: Optional[datetime]
    target: str = ""

    @property
    def name(self) -> str:
        """The last element of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "dir"

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> "FileInfo":
        return cls(raw["path"], raw["kind"], raw["size"], raw["mode"], moment(raw.get("modified")), raw.get("target", ""))


@dataclass(frozen=True)
class Change:
    """What happened to a file: created, written, removed, attributes, or lost if changes were not seen."""

    path: str
    what: str
    is_dir: bool = False


class Files:
    """Reads and writes files. Paths are absolute or relative to the working directory; links are not followed."""

    def __init__(self, client: Client, box_id: str) -> None:
        self._client = client
        self._id = box_id

    def _at(self, *parts: str) -> str:
        return path_of(self._id, "files", *parts)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return b"".join(self.read_chunks(path))

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """Return the content of a file as text."""
        return self.read(path).decode(encoding)

    def read_chunks(self, path: str, *, offset: int = 0) -> Iterator[bytes]:
        """Yield the content of a file, from an offset on, as it comes."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        yield from self._stream(self._at(), path, headers)

    def _stream(self, route: str, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        response, connection = self._client.send("GET", route, query={"path": path}, accept="*/*", headers=headers)
        try:
            while True:
                waits_for(connection)
                chunk = response.read(_CHUNK)
                waits_for(None)
                if not chunk:
                    return
                yield chunk
        except (http.client.HTTPException, OSError) as err:
            raise UnreachableError(f"the connection to the gateway broke: {err}") from err
        finally:
            waits_for(None)
            connection.close()

    def write(self, path: str, content: Union[str, bytes, IO[bytes]], *, mode: Optional[int] = None, exclusive: bool = False) -> FileInfo:
        """Write a file as a whole. Missing directories are made."""
        data = content.encode() if isinstance(content, str) else content
        response, connection = self._client.send("PUT", self._at(), query={"path": path, "mode": mode, "exclusive": exclusive}, content=data)
        return FileInfo.of(self._json(response, connection))

    @staticmethod
    def _json(response: Any, connection: Any) -> Any:
        text = response.read()
        connection.close()
        return json.loads(text)

    def list(self, path: str = ".") -> List[FileInfo]:
        """Return what is in a directory, sorted by name."""
        found: List[FileInfo] = []
        after: Optional[str] = None
        while True:
            page = self._client.call("GET", self._at("list"), query={"path": path, "after": after})
            found += [FileInfo.of(entry) for entry in page["files"]]
            if not page["more"]:
                return found
            after = page["files"][-1]["name"]

    def stat(self, path: str) -> FileInfo:
        """Describe a file."""
        return FileInfo.of(self._client.call("GET", self._at("stat"), query={"path": path}))

    def exists(self, path: str) -> bool:
        """Tell whether there is a file."""
        try:
            self.stat(path)
        except NotFoundError as err:
            if err.code != "file_not_found":
                raise
            return False
        return True

    def move(self, source: str, target: str, *, exclusive: bool = False) -> FileInfo:
        """Move a file or a directory."""
        return FileInfo.of(self._client.call("POST", self._at("move"), body={"from": source, "to": target, "exclusive": exclusive}))

    def mkdir(self, path: str) -> FileInfo:
        """Make a directory, with those above it."""
        return FileInfo.of(self._client.call("POST", self._at("mkdir"), body={"path": path}))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, or a directory with all that is in it."""
        self._client.call("DELETE", self._at(), query={"path": path, "recursive": recursive})

    def watch(self, path: str = ".", *, recursive: bool = False) -> Iterator[Change]:
        """Yield the changes in a directory. They are seen from the first next() on."""
        for name, data, _ in self._client.events("GET", self._at("watch"), query={"path": path, "recursive": recursive}):
            if name == "problem":
                raise error_of(data)
            if name == "change":
                yield Change(data["path"], data["what"], data.get("dir", False))

    def upload(self, source: str, target: str = ".") -> Dict[str, Any]:
        """Send a directory of this machine, with what is below it. Links are left out."""
        read_end, write_end = os.pipe()
        failed: List[BaseException] = []

        def pack() -> None:
            try:
                with os.fdopen(write_end, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as archive:
                    archive.add(source, arcname=".", filter=_plain)
            except BaseException as err:  # it is raised below
                failed.append(err)

        packer = threading.Thread(target=pack, daemon=True)
        packer.start()
        with os.fdopen(read_end, "rb") as content:
            try:
                response, connection = self._client.send("PUT", self._at("archive"), query={"path": target}, content=content)
            finally:
                content.close()
                packer.join()
        if failed:
            raise failed[0]
        totals: Dict[str, Any] = self._json(response, connection)
        return totals

    def download(self, source: str, target: str) -> None:
        """Copy a file or directory into a directory of this machine."""
        with tarfile.open(fileobj=io.BufferedReader(_Chunks(self._stream(self._at("archive"), source, {})), _CHUNK), mode="r|") as archive:
            _extract(archive, target)


class _Chunks(io.RawIOBase):
    """A reader of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest: bytes = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._chunks, b"")
        size = min(len(self._rest), len(buffer))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _plain(entry: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
    return entry if entry.isfile() or entry.isdir() else None


def _extract(archive: tarfile.TarFile, target: str) -> None:
    """Unpack files and directories below target. What a sandbox sends is not believed."""
    base = os.path.realpath(target)
    for entry in archive:
        path = os.path.realpath(os.path.join(base, entry.name))
        if os.path.commonpath([base, path]) != base:
            raise ValueError(f"the archive has a path outside: {entry.name!r}")
        if entry.isdir():
            os.makedirs(path, exist_ok=True)
        elif entry.isfile():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            source = archive.extractfile(entry)
            assert source is not None
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, entry.mode & 0o755)
            with os.fdopen(descriptor, "wb") as out:
                while True:
                    chunk = source.read(_CHUNK)
                    if not chunk:
                        break
                    out.write(chunk)



