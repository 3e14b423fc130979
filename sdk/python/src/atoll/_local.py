"""The gateway of this user on this machine."""

from __future__ import annotations

import os
import socket
import subprocess

from ._errors import UnreachableError


def default_socket() -> str:
    """Return where this user's gateway listens."""
    state = os.environ.get("ATOLL_STATE_DIR") or os.path.join(os.path.expanduser("~"), ".atoll")
    return os.path.join(state, "gateway.sock")


def answers(path: str) -> bool:
    """Tell whether somebody listens at a socket."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(2)
        probe.connect(path)
        return True
    except OSError:
        return False
    finally:
        probe.close()


def start_private() -> str:
    """Return the socket of this user's gateway, which the program atoll starts if none runs."""
    program = os.environ.get("ATOLL_PROGRAM") or "atoll"
    try:
        done = subprocess.run([program, "gateway", "--background"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as err:
        raise UnreachableError(f"no gateway runs, and {program} could not be started: {err}", "install atoll, or set ATOLL_PROGRAM, or ATOLL_URL and ATOLL_TOKEN") from err
    if done.returncode != 0:
        raise UnreachableError(f"no gateway runs, and none could be started: {done.stderr.strip()}", "run `atoll doctor`")
    return done.stdout.strip()
