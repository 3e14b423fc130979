"""What goes wrong, with what to do about it."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class AtollError(Exception):
    """A request that the gateway refused, or could not carry out."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.code: str = str(problem.get("code", ""))
        self.status: int = int(problem.get("status", 0))
        self.detail: str = str(problem.get("detail") or problem.get("title") or self.code)
        self.hint: str = str(problem.get("hint", ""))
        self.request_id: str = str(problem.get("requestId", ""))
        self.fields = {str(e.get("pointer", "")): str(e.get("detail", "")) for e in problem.get("errors") or []}
        text = self.detail
        for pointer, detail in self.fields.items():
            text += f"; {pointer}: {detail}"
        if self.hint:
            text += f" (hint: {self.hint})"
        super().__init__(text)


class InvalidRequestError(AtollError):
    """A request that cannot be meant: fields says what is wrong with which member."""


class ForbiddenError(AtollError):
    """The token is missing, or does not allow this, or a policy does not."""


class NotFoundError(AtollError):
    """A sandbox, file, process or template that is not there."""


class ConflictError(AtollError):
    """The sandbox or the file is not in a state in which this is possible."""


class LimitError(AtollError):
    """A quota is used up, or there is too much at once: try again later."""


class UnreachableError(AtollError):
    """No gateway answers, and none could be started."""

    def __init__(self, detail: str, hint: str = "") -> None:
        super().__init__({"code": "unreachable", "detail": detail, "hint": hint})


class CommandError(AtollError):
    """A command that failed and was run with check=True. The result has its output."""

    def __init__(self, result: Any) -> None:
        self.result = result
        said = (result.stderr or result.error or result.stdout).strip()[-500:]
        super().__init__({"code": "command_failed", "detail": f"exit code {result.exit_code}: {said}"})


_BY_STATUS = {401: ForbiddenError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 412: ConflictError, 422: InvalidRequestError, 429: LimitError, 507: LimitError}


def error_of(problem: Mapping[str, Any], status: Optional[int] = None) -> AtollError:
    """Return the error of a problem."""
    return _BY_STATUS.get(status or int(problem.get("status", 0)), AtollError)(problem)
