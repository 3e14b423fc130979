"""What goes wrong says what it is, and what to do."""

from atoll import CommandError, InvalidRequestError, NotFoundError, Sandbox

with Sandbox() as box:
    try:
        box.run("ls nothing", check=True)
    except CommandError as err:
        print("command:", err.result.exit_code)
    print("timed out:", box.run("sleep 100", timeout=0.5).timed_out)
    try:
        box.files.read("nothing")
    except NotFoundError as err:
        print(err.code)
try:
    Sandbox(timeout=10**9)
except InvalidRequestError as err:
    print(err.fields)

# Output:
# command: 2
# timed out: True
# file_not_found
# {'/timeoutSeconds': 'must be from 1 to 2592000'}
