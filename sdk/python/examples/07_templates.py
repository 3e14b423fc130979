"""The files of a sandbox are kept, and others begin with them."""

from atoll import Sandbox

with Sandbox() as box:
    box.run("echo prepared >state", check=True)
    box.stop()
    box.snapshot("prepared")
    with box.fork() as other:
        other.run("echo changed >state", check=True)
    box.resume()
    print(box.files.read_text("state"), end="")
with Sandbox(template="prepared") as again:
    print(again.files.read_text("state"), end="")
print([template.name for template in Sandbox.templates()])
Sandbox.remove_template("prepared")

# Output:
# prepared
# prepared
# ['prepared']
