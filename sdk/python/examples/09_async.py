"""Servers inside are reached through the gateway, several at once, with asyncio."""

import asyncio

from atoll import AsyncSandbox


async def greet(name: str) -> str:
    async with AsyncSandbox() as box:
        await box.files.write("index.html", f"hello {name}")
        started = await box.start("exec python3 -u -m http.server 8000 2>&1")
        server = await box.process(started.id)
        async for _ in server.output():  # it says that it serves
            break
        answer = await box.port(8000).fetch("/index.html")
        return f"{answer.status} {answer.text}"


async def main() -> None:
    print(await asyncio.gather(*(greet(name) for name in ("Ann", "Ben", "Cleo"))))


asyncio.run(main())

# Output:
# ['200 hello Ann', '200 hello Ben', '200 hello Cleo']
