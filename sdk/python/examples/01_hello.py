"""A sandbox in three lines."""

from atoll import Sandbox

with Sandbox() as box:
    print(box.run("python3 -c 'print(6*7)'").stdout, end="")

# Output:
# 42
