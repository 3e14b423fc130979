"""A command in the background is followed, found again, and ended."""

from atoll import Sandbox

with Sandbox() as box:
    server = box.start("echo ready; exec sleep 1000")
    for wrote in server.output():
        print(wrote.stream, wrote.data.decode().strip())
        break
    again = box.process(server.id)
    print("running:", again.running)
    again.kill()
    print("left:", len(box.processes()))

# Output:
# stdout ready
# running: True
# left: 0
