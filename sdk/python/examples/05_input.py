"""A program that waits for input is written to, at a terminal too."""

from atoll import Sandbox

with Sandbox() as box:
    shell = box.start("sh", stdin=True)
    shell.write("name=Atoll\n")
    shell.write('echo "hello $name"\n', end=True)
    result = shell.wait()
    print(result.stdout, end="")
    print(box.run("tr a-z A-Z", stdin="at once\n").stdout, end="")

    screen = box.start("stty -echo; echo ready; read answer; stty size; exit $answer", terminal=(24, 80))
    with screen.terminal() as terminal:
        seen = b""
        for data in terminal.output():
            seen += data
            if seen == b"ready\r\n":
                terminal.resize(40, 120)
                terminal.write("7\n")
        print(seen.decode().split(), terminal.result and terminal.result.exit_code)

# Output:
# hello Atoll
# AT ONCE
# ['ready', '40', '120'] 7
