"""Messages of a Jupyter kernel as events of the stream that clients read."""

import json

from limits import MAX_EVENT

# The fields of a result, by the type of content that they come from.
FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}

END = {"type": "end_of_execution"}


def error(name, value, traceback=""):
    """Returns the event of an error."""
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def result(data, is_main):
    """Returns the event of a result from its content by type."""
    event = {"type": "result", "is_main_result": is_main, "extra": {}}
    for kind, content in data.items():
        if kind in FIELDS:
            event[FIELDS[kind]] = content
        else:
            event["extra"][kind] = content
    text = event.get("text")
    if isinstance(text, str) and len(text) > 1 and text[0] == text[-1] == "'":
        event["text"] = text[1:-1]  # a string is shown without its quotes
    return event


def _time(date):
    return date.isoformat() if hasattr(date, "isoformat") else str(date)


def of_message(message):
    """Returns the event of a message of the kernel, None if clients do not see it or if
    it is not as the kernel writes it."""
    try:
        return _of_message(message)
    except (AttributeError, KeyError, TypeError):
        return None


def _of_message(message):
    kind, content = message["msg_type"], message["content"]
    if kind == "stream" and content["name"] in ("stdout", "stderr"):
        return {"type": content["name"], "text": content["text"], "timestamp": _time(message["header"].get("date"))}
    if kind in ("display_data", "execute_result"):
        return result(content["data"], kind == "execute_result")
    if kind == "error":
        return error(content["ename"], content["evalue"], "\n".join(content["traceback"]))
    if kind == "execute_input":
        return {"type": "number_of_executions", "execution_count": content["execution_count"]}
    return None


def is_idle(message):
    """Reports whether a message says that the kernel is done with its request."""
    return message["msg_type"] == "status" and message["content"].get("execution_state") == "idle"


def line(event):
    """Returns the line of an event: JSON in ASCII. One that is too long is replaced."""
    text = json.dumps(event, default=str)
    if len(text) > MAX_EVENT:
        said = f"[{event['type']} of {len(text)} bytes left out: more than {MAX_EVENT}]\n"
        text = json.dumps({"type": "stderr", "text": said, "timestamp": ""})
    return text.encode("ascii") + b"\n"
