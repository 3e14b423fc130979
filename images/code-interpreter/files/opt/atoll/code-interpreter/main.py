"""Serves the interpreter until the process is ended."""

import os
import signal
import sys

from contexts import Contexts
from kernel import Kernel
from limits import PORT
from server import Server


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    contexts = Contexts(Kernel, os.getcwd())
    try:
        Server(("127.0.0.1", PORT), contexts).serve_forever()
    finally:
        for context in list(contexts.all.values()):
            context.kernel.kill()
            context.kernel.close()


main()
