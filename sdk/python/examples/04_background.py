"""A command in the background is followed, and ended."""

from atoll import Sandbox

with Sandbox() as box:
    server = box.start("echo ready; exec sleep 1000")
    for name, data in server.output():
        print(name, data.decode().strip())
        break
    print("running:", server.running)
    server.kill()
    print("left:", len(box.processes()))

# Output:
# stdout ready
# running: True
# left: 0
