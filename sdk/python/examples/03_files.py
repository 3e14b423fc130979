"""Files are written, listed, moved and read."""

from atoll import Sandbox

with Sandbox() as box:
    box.files.write("data/numbers.txt", "1\n2\n3\n")
    print([entry.name for entry in box.files.list("data")])
    print(box.run("paste -sd+ data/numbers.txt").stdout, end="")
    box.files.move("data/numbers.txt", "moved.txt")
    print(box.files.read_text("moved.txt").split(), box.files.exists("data/numbers.txt"))

# Output:
# ['numbers.txt']
# 1+2+3
# ['1', '2', '3'] False
