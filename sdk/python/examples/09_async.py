"""Several at once, with asyncio."""

import asyncio

from atoll import AsyncSandbox


async def square(n: int) -> int:
    async with AsyncSandbox() as box:
        started = await box.start(f"echo $(({n} * {n}))")
        same = await box.process(started.id)
        return int((await same.wait()).stdout)


async def main() -> None:
    print(await asyncio.gather(*(square(n) for n in range(4))))


asyncio.run(main())

# Output:
# [0, 1, 4, 9]
