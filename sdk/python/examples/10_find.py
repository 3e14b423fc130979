"""Sandboxes are found by what was noted with them, measured, and live longer when asked to."""

from atoll import Sandbox

with Sandbox(metadata={"user": "ann"}, timeout=60) as box:
    print([found.id == box.id for found in Sandbox.list(metadata={"user": "ann"})])
    same = Sandbox.connect(box.id)
    before = box.info().deadline
    later = same.extend(600).deadline
    print("later:", before and later and later > before)
    used = same.metrics()
    print("used:", used.memory_bytes > 0, used.processes > 0)
    print(repr(box).startswith("Sandbox("), box.info().running)

# Output:
# [True]
# later: True
# used: True True
# True True
