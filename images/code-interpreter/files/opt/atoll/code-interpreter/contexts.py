"""Contexts: named kernels that do not share variables."""

import os
import threading
import uuid

from limits import MAX_CONTEXTS, Refusal

LANGUAGES = {"python": "python", "python3": "python", "py": "python"}


def language_of(name):
    """Returns the language that a name means, and refuses what there is no kernel for."""
    if name is None:
        return "python"
    known = LANGUAGES.get(name.strip().lower()) if isinstance(name, str) else None
    if known is None:
        raise Refusal(400, f"language {name!r:.100} is not supported: this image has a kernel for python only")
    return known


class Context:
    """A kernel and its name. Executions take turns by its lock."""

    def __init__(self, cwd, start):
        self.id = str(uuid.uuid4())
        self.cwd = cwd
        self.start = start
        self.lock = threading.Lock()
        self.removed = False
        self.kernel = start(cwd)

    def describe(self):
        return {"id": self.id, "language": "python", "cwd": self.cwd}

    def renew(self):
        """Starts another kernel in the place of one that ended. The lock is held."""
        self.kernel.kill()
        self.kernel.close()
        self.kernel = self.start(self.cwd)


class Contexts:
    """All contexts. start makes a kernel that works in a directory."""

    def __init__(self, start, cwd):
        self.start = start
        self.cwd = cwd
        self.mutex = threading.Lock()
        self.all = {}
        self.pending = 0  # that are being made
        self.default = self.create(cwd).id

    def create(self, cwd=None):
        cwd = self.cwd if cwd is None else cwd
        if not isinstance(cwd, str) or "\0" in cwd or not os.path.isdir(cwd):
            raise Refusal(400, f"cwd {cwd!r:.200} is not a directory")
        with self.mutex:
            if len(self.all) + self.pending >= MAX_CONTEXTS:
                raise Refusal(429, f"there are {MAX_CONTEXTS} contexts already: delete one of them")
            self.pending += 1
        try:
            context = Context(cwd, self.start)
            with self.mutex:
                self.all[context.id] = context
        finally:
            with self.mutex:
                self.pending -= 1
        return context

    def list(self):
        with self.mutex:
            return [context.describe() for context in self.all.values()]

    def get(self, name=None):
        """Returns a context; without a name the one that is there from the start."""
        with self.mutex:
            context = self.all.get(self.default if name is None else name)
        if context is None:
            raise Refusal(404, f"Context {name or 'default'} not found")
        return context

    def restart(self, name):
        """Ends the kernel with whatever it executes, and starts another."""
        context = self.get(name)
        context.kernel.kill()
        with context.lock:
            if not context.removed:
                context.renew()

    def remove(self, name):
        with self.mutex:
            context = self.all.pop(name, None)
        if context is None:
            raise Refusal(404, f"Context {name} not found")
        context.removed = True
        context.kernel.kill()
        with context.lock:
            context.kernel.close()
