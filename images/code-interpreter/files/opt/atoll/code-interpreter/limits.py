"""The bounds of the server, and what it answers beyond them."""

PORT = 49999  # of loopback
MAX_BODY = 4 << 20  # bytes of a request: 413
MAX_CONTEXTS = 16  # 429
MAX_CONNECTIONS = 64  # at once: 503
MAX_VARIABLES = 256  # in env_vars: 400
MAX_EVENT = 32 << 20  # bytes of one line of output; longer ones are left out, and that is said
PAUSE_AT = 8 << 20  # bytes that a client did not take yet at which the kernel is held up
RESUME_AT = 2 << 20  # bytes at which it goes on
START_SECONDS = 60  # that a kernel has to answer for the first time
STALL_SECONDS = 300  # after which a client that takes nothing counts as gone
IDLE_SECONDS = 120  # that a connection may be without a request


class Refusal(Exception):
    """A request that is refused, with the status and a sentence for the caller."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status
        self.message = message
