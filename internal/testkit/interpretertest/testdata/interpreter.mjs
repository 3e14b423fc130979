// Uses the code interpreter of E2B's SDK as its documentation does, and prints what went
// wrong. It is a program for E2B: nothing in it knows of Atoll but its environment.
import { Sandbox } from '@e2b/code-interpreter'

let steps = 0
let failures = 0
const is = (got, want) => {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
  if (a !== b) throw new Error(`got ${a}, want ${b}`)
}
const step = async (name, f) => {
  steps++
  try {
    await f()
  } catch (e) {
    failures++
    console.error(`${name}: ${e.stack}`)
  }
}
const fails = async (f, part) => {
  try {
    await f()
  } catch (e) {
    if (!e.message.includes(part)) throw new Error(`another error: ${e.message}`)
    return
  }
  throw new Error('no error')
}

const sandbox = await Sandbox.create({ timeoutMs: 120_000, envs: { COLOR: 'blue' } })

await step('text', async () => is((await sandbox.runCode('x = 1; x + 1')).text, '2'))
await step('variables stay', async () => is((await sandbox.runCode('x')).text, '1'))
await step('output', async () => {
  const done = await sandbox.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)')
  is([done.logs.stdout.join(''), done.logs.stderr.join(''), done.results.length, done.error], ['out\n', 'err\n', 0, undefined])
})
await step('the number of executions', async () => {
  const [one, two] = [await sandbox.runCode('1'), await sandbox.runCode('1')]
  is(two.executionCount - one.executionCount, 1)
})
await step('callbacks in order', async () => {
  const seen = []
  await sandbox.runCode('import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.05)\ndisplay("shown")\n"last"', {
    onStdout: (o) => seen.push(o.line.trim()),
    onStderr: (o) => seen.push(o.line),
    onResult: (r) => seen.push(r.text + (r.isMainResult ? '!' : '')),
    onError: (e) => seen.push(e.name),
  })
  is(seen, ['0', '1', '2', 'shown', 'last!'])
})
await step('a figure', async () => {
  const done = await sandbox.runCode('import matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.show()')
  const picture = Buffer.from(done.results[0].png, 'base64')
  is(picture.subarray(0, 8).toString('hex'), '89504e470d0a1a0a')
  if (picture.length < 1000 || !done.results[0].formats().includes('png')) throw new Error(`${picture.length} bytes`)
})
await step('a table', async () => {
  const [table] = (await sandbox.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2]})')).results
  if (!table.html.includes('<table') || !table.isMainResult) throw new Error(table.html)
})
await step('other formats', async () => {
  const [shown] = (await sandbox.runCode('from IPython.display import SVG, JSON, Markdown\ndisplay(JSON({"a": 1}))')).results
  is(shown.json, { a: 1 })
})
await step('an error', async () => {
  const seen = []
  const { error, results } = await sandbox.runCode('1 / 0', { onError: (e) => seen.push(e.name) })
  is([error.name, error.value, results.length, seen], ['ZeroDivisionError', 'division by zero', 0, ['ZeroDivisionError']])
  if (!error.traceback.includes('Traceback')) throw new Error(error.traceback)
})
await step('code that is no code', async () => is((await sandbox.runCode('if')).error.name, 'SyntaxError'))
await step('variables of a call', async () => {
  is((await sandbox.runCode('import os; os.environ["CALL"]', { envs: { CALL: 'of one' } })).text, 'of one')
  is((await sandbox.runCode('os.environ.get("CALL", "gone")')).text, 'gone')
})
await step('variables of the sandbox', async () => is((await sandbox.runCode('import os; os.environ["COLOR"]')).text, 'blue'))
await step('files are shared with commands', async () => {
  await sandbox.files.write('/tmp/data.csv', 'a,b\n1,2\n')
  is((await sandbox.runCode('import pandas as pd; int(pd.read_csv("/tmp/data.csv").b[0])')).text, '2')
  await sandbox.runCode('open("/tmp/out", "w").write("from python")')
  is(await sandbox.files.read('/tmp/out'), 'from python')
  is((await sandbox.commands.run('cat /tmp/out')).stdout, 'from python')
})
await step('many short answers, each whole', async () => {
  for (let n = 0; n < 60; n++) is((await sandbox.runCode(`${n}`)).text, `${n}`)
})
await step('a shell command in a cell', async () => is((await sandbox.runCode('!echo $((6*7))')).logs.stdout.join('').trim(), '42'))

// Contexts.
await step('contexts', async () => {
  const context = await sandbox.createCodeContext({ cwd: '/tmp' })
  is([context.language, context.cwd], ['python', '/tmp'])
  is((await sandbox.runCode('x', { context })).error.name, 'NameError')
  is((await sandbox.runCode('import os; x = 5; os.getcwd()', { context })).text, '/tmp')
  is([(await sandbox.runCode('x')).text, (await sandbox.runCode('x', { context })).text], ['1', '5'])
  is((await sandbox.listCodeContexts()).map((c) => c.id).includes(context.id), true)
  await sandbox.restartCodeContext(context)
  is((await sandbox.runCode('x', { context })).error.name, 'NameError')
  await sandbox.removeCodeContext(context)
  await fails(() => sandbox.runCode('1', { context }), 'not found')
  is((await sandbox.listCodeContexts()).length, 1)
})
await step('another language', () => fails(() => sandbox.runCode('1', { language: 'r' }), '400'))
await step('a timeout interrupts, and variables stay', async () => {
  await fails(() => sandbox.runCode('import time; time.sleep(600)', { timeoutMs: 1000 }), 'timed out')
  is((await sandbox.runCode('x')).text, '1')
})
await step('a kernel that dies', async () => {
  is((await sandbox.runCode('import os, signal; os.kill(os.getpid(), signal.SIGKILL)')).error.name, 'KernelDied')
  is((await sandbox.runCode('x')).error.name, 'NameError')
})
await step('much output', async () => {
  const done = await sandbox.runCode('for n in range(5000): print("x" * 999)')
  is(done.logs.stdout.join('').length, 5_000_000)
})
await step('kill', async () => is(await sandbox.kill(), true))

console.log(JSON.stringify({ steps, failures }))
process.exit(failures === 0 ? 0 : 1)
