"""What a command writes, as it comes. A reader that is slow holds the command up."""

from atoll import Sandbox

with Sandbox() as box:
    lines: list[str] = []
    result = box.run("seq 1 100000; echo done >&2", on_stdout=lines.append, on_stderr=lambda text: print("stderr:", text.strip()))
    print("".join(lines).count("\n"), "lines, exit code", result.exit_code)

# Output:
# stderr: done
# 100000 lines, exit code 0
