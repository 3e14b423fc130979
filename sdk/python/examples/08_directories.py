"""A directory of this machine goes in, and results come out."""

import pathlib
import tempfile

from atoll import Sandbox

with tempfile.TemporaryDirectory() as here:
    project = pathlib.Path(here, "project")
    project.mkdir()
    (project / "words").write_text("one two three")
    with Sandbox(copy=str(project)) as box:
        box.run("mkdir out && wc -w <words >out/count", check=True)
        box.files.download("out", here)
    print(sorted(path.name for path in pathlib.Path(here).rglob("count")))

# Output:
# ['count']
