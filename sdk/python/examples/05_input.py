"""A program that waits for input is written to."""

from atoll import Sandbox

with Sandbox() as box:
    shell = box.start("sh", stdin=True)
    shell.write("name=Atoll\n")
    shell.write('echo "hello $name"\n', end=True)
    result = shell.wait()
    print(result.stdout, end="")
    print(box.run("tr a-z A-Z", stdin="at once\n").stdout, end="")

# Output:
# hello Atoll
# AT ONCE
