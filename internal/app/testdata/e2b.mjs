// Uses the SDK of E2B as its documentation does, and prints what went wrong. It is a
// program for E2B: nothing in it knows of Atoll but its environment.
import http from 'node:http'
import { Sandbox, CommandExitError, FileType, FilesystemEventType, NotFoundError, SandboxNotFoundError, TimeoutError, AuthenticationError, InvalidArgumentError, RateLimitError } from 'e2b'

const left = (process.env.E2B_TEST_LEFT_OUT ?? '').split(',')
let steps = 0
let failures = 0
const is = (got, want) => {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
  if (a !== b) throw new Error(`got ${a}, want ${b}`)
}
const throws = async (kind, f, part = '') => {
  try {
    await f()
  } catch (e) {
    if (!(e instanceof kind) || !e.message.includes(part)) throw new Error(`another error: ${e.constructor.name} ${e.message}`)
    return
  }
  throw new Error(`no ${kind.name}`)
}
const step = async (name, f) => {
  if (left.includes(name)) return
  steps++
  try {
    await f()
  } catch (e) {
    failures++
    console.error(`${name}: ${e.stack}`)
  }
}
const until = async (f) => {
  for (let i = 0; i < 600; i++) {
    if (await f()) return
    await new Promise((r) => setTimeout(r, 50))
  }
  throw new Error('it does not happen')
}
const ask = (host, path, headers) =>
  new Promise((resolve, reject) => {
    const [address, port] = process.env.E2B_TEST_ADDRESS.split(':')
    http.get({ host: address, port, path, headers: { ...headers, host } }, (answer) => {
      let text = ''
      answer.on('data', (d) => (text += d))
      answer.on('end', () => resolve({ status: answer.statusCode, text }))
    }).on('error', reject)
  })

const sandbox = await Sandbox.create({ metadata: { user: 'a b&c', task: '1' }, envs: { COLOR: 'blue' }, timeoutMs: 120_000 })
const { commands, files, pty, git } = sandbox

await step('an id and a host', () => {
  if (!/^[a-z0-9]{20}$/.test(sandbox.sandboxId)) throw new Error(sandbox.sandboxId)
  if (!sandbox.getHost(3000).startsWith(`3000-${sandbox.sandboxId}.localhost:`)) throw new Error(sandbox.getHost(3000))
})
await step('is running', async () => is(await sandbox.isRunning(), true))

// Commands.
await step('a command', async () => is((await commands.run('echo hello')).stdout, 'hello\n'))
await step('stderr', async () => is((await commands.run('echo oops >&2')).stderr, 'oops\n'))
await step('the home', async () => is((await commands.run('pwd; echo $HOME')).stdout, '/home/user\n/home/user\n'))
await step('variables of the sandbox', async () => is((await commands.run('echo $COLOR')).stdout, 'blue\n'))
await step('variables of a command', async () => is((await commands.run('echo $COLOR $SIZE', { envs: { COLOR: 'red', SIZE: '2' } })).stdout, 'red 2\n'))
await step('a directory', async () => is((await commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n'))
await step('an exit code', async () => {
  try {
    await commands.run('echo x; exit 3')
  } catch (e) {
    if (!(e instanceof CommandExitError)) throw e
    is([e.exitCode, e.stdout, e.error], [3, 'x\n', 'exit status 3'])
    return
  }
  throw new Error('no error')
})
await step('callbacks', async () => {
  let out = ''
  let err = ''
  await commands.run('echo a; echo b >&2', { onStdout: (d) => void (out += d), onStderr: (d) => void (err += d) })
  is([out, err], ['a\n', 'b\n'])
})
await step('much output', async () => is((await commands.run('seq 300000')).stdout.length, 1_988_895))
await step('bytes that are no text', async () => is((await commands.run("printf '\\xff\\xe2\\x82\\xac'")).stdout, '\ufffd€'))
await step('a time limit', async () => throws(TimeoutError, () => commands.run('sleep 60', { timeoutMs: 300 })))
await step('what ran out of time is ended', async () => until(async () => (await commands.list()).length === 0))
await step('no such directory', async () => throws(InvalidArgumentError, () => commands.run('true', { cwd: '/none' })))
await step('root is refused', async () => throws(AuthenticationError, () => commands.run('true', { user: 'root' }), 'one user'))
await step('user is the user', async () => is((await commands.run('echo $0', { user: 'user' })).exitCode, 0))

// In the background.
await step('in the background', async () => {
  const handle = await commands.run('echo begun; sleep 0.1; echo over', { background: true })
  is((await handle.wait()).stdout, 'begun\nover\n')
})
await step('a list of processes', async () => {
  const handle = await commands.run('sleep 100', { background: true })
  const found = (await commands.list()).find((p) => p.pid === handle.pid)
  is([found.cmd, found.args], ['/bin/bash', ['-l', '-c', 'sleep 100']])
  is(await handle.kill(), true)
  await throws(CommandExitError, () => handle.wait())
  is(await commands.kill(handle.pid), false)
})
await step('input', async () => {
  const handle = await commands.run('cat', { background: true, stdin: true })
  await commands.sendStdin(handle.pid, 'typed\n')
  await commands.closeStdin(handle.pid)
  is((await handle.wait()).stdout, 'typed\n')
})
await step('no input', async () => is((await commands.run('cat; echo end')).stdout, 'end\n'))
await step('to leave and come again', async () => {
  const handle = await commands.run('read line; echo "got $line"', { background: true, stdin: true, timeoutMs: 0 })
  await handle.disconnect()
  let out = ''
  const again = await commands.connect(handle.pid, { onStdout: (d) => void (out += d) })
  await commands.sendStdin(handle.pid, 'it\n')
  await again.wait()
  is(out, 'got it\n')
})
await step('to come to nothing', async () => throws(NotFoundError, () => commands.connect(999_999)))

// Terminals.
await step('a terminal', async () => {
  let out = ''
  const terminal = await pty.create({ cols: 90, rows: 30, onData: (d) => void (out += new TextDecoder().decode(d)), envs: { PS1: '> ' } })
  await pty.sendInput(terminal.pid, new TextEncoder().encode('stty size\n'))
  await until(() => out.includes('30 90'))
  await pty.resize(terminal.pid, { cols: 100, rows: 40 })
  await pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit 0\n'))
  is((await terminal.wait()).exitCode, 0)
  if (!out.includes('40 100')) throw new Error(out)
})
await step('the end of a terminal', async () => {
  const terminal = await pty.create({ cols: 80, rows: 24, onData: () => {} })
  is(await pty.kill(terminal.pid), true)
  await throws(CommandExitError, () => terminal.wait())
  is(await pty.kill(terminal.pid), false)
})

// Files.
await step('write and read', async () => {
  const info = await files.write('a/b.txt', 'text €')
  is([info.name, info.type, info.path], ['b.txt', 'file', '/home/user/a/b.txt'])
  is(await files.read('a/b.txt'), 'text €')
})
await step('files are those of commands', async () => is((await commands.run('cat a/b.txt')).stdout, 'text €'))
await step('bytes', async () => {
  const bytes = new Uint8Array([0, 255, 1, 254])
  await files.write('bytes', bytes.buffer)
  is([...(await files.read('bytes', { format: 'bytes' }))], [0, 255, 1, 254])
})
await step('a blob', async () => is(await (await files.read('a/b.txt', { format: 'blob' })).text(), 'text €'))
await step('a stream', async () => {
  await files.write('stream', new Blob(['from a stream']).stream())
  let text = ''
  for await (const part of await files.read('stream', { format: 'stream' })) text += new TextDecoder().decode(part)
  is(text, 'from a stream')
})
await step('gzip', async () => {
  await files.write('zip', 'z'.repeat(100_000), { gzip: true })
  is((await files.read('zip', { gzip: true })).length, 100_000)
})
await step('octets', async () => {
  await files.write('octets', 'o', { useOctetStream: true })
  is(await files.read('octets'), 'o')
})
await step('an empty file', async () => {
  await files.write('empty', '')
  is(await files.read('empty'), '')
})
await step('several files', async () => {
  const written = await files.write([
    { path: 'many/1', data: 'one' },
    { path: '/home/user/many/deep/2', data: 'two' },
  ])
  is(written.map((w) => w.path), ['/home/user/many/1', '/home/user/many/deep/2'])
  is(await files.read('many/deep/2'), 'two')
})
await step('a large file', async () => {
  await files.write('large', 'x'.repeat(8 << 20))
  is((await commands.run('wc -c <large')).stdout.trim(), String(8 << 20))
})
await step('no such file', async () => throws(NotFoundError, () => files.read('none')))
await step('a directory is no file', async () => throws(InvalidArgumentError, () => files.read('a')))
await step('list', async () => {
  const list = await files.list('many')
  is(list.map((e) => [e.name, e.type]), [['1', FileType.FILE], ['deep', FileType.DIR]])
})
await step('list deeper', async () => is((await files.list('many', { depth: 2 })).map((e) => e.path).sort(), ['/home/user/many/1', '/home/user/many/deep', '/home/user/many/deep/2']))
await step('no such directory to list', async () => throws(NotFoundError, () => files.list('nowhere')))
await step('exists', async () => is([await files.exists('many'), await files.exists('nowhere')], [true, false]))
await step('info', async () => {
  const info = await files.getInfo('a/b.txt')
  is([info.size, info.mode, info.permissions, info.owner, info.type], [8, 0o644, '-rw-r--r--', 'user', 'file'])
  if (Math.abs(info.modifiedTime - Date.now()) > 60_000) throw new Error(info.modifiedTime)
})
await step('make a directory', async () => is([await files.makeDir('new/er'), await files.makeDir('new/er')], [true, false]))
await step('rename', async () => {
  is((await files.rename('a/b.txt', 'new/c.txt')).path, '/home/user/new/c.txt')
  is([await files.exists('a/b.txt'), await files.read('new/c.txt')], [false, 'text €'])
})
await step('rename nothing', async () => throws(NotFoundError, () => files.rename('none', 'other')))
await step('remove', async () => {
  await files.remove('many')
  is(await files.exists('many'), false)
})
await step('links are followed', async () => {
  await commands.run('ln -s new/c.txt link; ln -s /home/user/new dir; ln -s nowhere broken; ln -s loop loop')
  is([await files.read('link'), await files.read('dir/c.txt')], ['text €', 'text €'])
  is((await files.list('dir')).map((e) => e.name), ['c.txt', 'er'])
  const info = await files.getInfo('link')
  is([info.type, info.symlinkTarget], ['file', '/home/user/new/c.txt'])
  await files.write('link', 'through')
  is((await commands.run('test -L link && cat new/c.txt')).stdout, 'through')
  await throws(NotFoundError, () => files.read('broken'))
  await throws(Error, () => files.read('loop'), 'links')
})
await step('what the system has', async () => {
  if (!(await files.read('/etc/passwd')).includes(':')) throw new Error('nothing in it')
})

// Watching.
await step('watch', async () => {
  const seen = []
  const watch = await files.watchDir('new', (e) => void seen.push(e))
  await files.write('new/w.txt', '1')
  await until(() => seen.some((e) => e.name === 'w.txt' && e.type === FilesystemEventType.WRITE))
  await commands.run('chmod 600 new/w.txt; rm new/w.txt')
  await until(() => seen.some((e) => e.name === 'w.txt' && e.type === FilesystemEventType.REMOVE))
  is([seen.some((e) => e.type === FilesystemEventType.CREATE), seen.some((e) => e.type === FilesystemEventType.CHMOD), seen.every((e) => e.name === 'w.txt')], [true, true, true])
  await watch.stop()
})
await step('watch below', async () => {
  const seen = []
  const watch = await files.watchDir('new', (e) => void seen.push(e.name), { recursive: true })
  await files.write('new/er/deep.txt', '1')
  await until(() => seen.includes('er/deep.txt'))
  await watch.stop()
})
await step('the end of a watch', async () => {
  let ended
  await files.watchDir('new', () => {}, { timeoutMs: 200, onExit: (e) => void (ended = e ?? true) })
  await until(() => ended)
  if (!(ended instanceof TimeoutError)) throw ended
})
await step('watch nothing', async () => throws(NotFoundError, () => files.watchDir('nowhere', () => {})))

// Git.
await step('git', async () => {
  await git.init('repo', { initialBranch: 'main' })
  await git.configureUser('A', 'a@example.org', { scope: 'local', path: 'repo' })
  await files.write('repo/file', 'v1')
  is((await git.status('repo')).fileStatus.map((f) => f.name), ['file'])
  await git.add('repo')
  await git.commit('repo', 'first')
  is((await git.branches('repo')).currentBranch, 'main')
  is((await commands.run('git -C repo log --format=%s')).stdout, 'first\n')
})
await step('branches of git', async () => {
  await git.createBranch('repo', 'more')
  await git.checkoutBranch('repo', 'main')
  is((await git.branches('repo')).branches.sort(), ['main', 'more'])
})

// Ports.
await step('a port', async () => {
  await files.write('www/index.html', 'served')
  const server = await commands.run('python3 -m http.server --bind 127.0.0.1 -d www 8123', { background: true, timeoutMs: 0 })
  const token = { 'e2b-traffic-access-token': sandbox.trafficAccessToken }
  await until(async () => (await ask(sandbox.getHost(8123), '/', token)).text === 'served')
  is((await ask(sandbox.getHost(8123), '/', {})).status, 401)
  is((await ask(sandbox.getHost(8124), '/', token)).status, 502)
  await server.kill()
})
await step('a signed URL', async () => {
  const url = new URL(await sandbox.downloadUrl('/home/user/new/c.txt', { useSignatureExpiration: 60 }))
  const host = sandbox.getHost(49983)
  is((await ask(host, url.pathname + url.search, {})).text, 'through')
  url.searchParams.set('path', '/etc/passwd')
  is((await ask(host, url.pathname + url.search, {})).status, 502)
  const late = new URL(await sandbox.downloadUrl('/home/user/new/c.txt', { useSignatureExpiration: -60 }))
  is((await ask(host, late.pathname + late.search, {})).status, 502)
})

// The sandbox.
await step('about it', async () => {
  const info = await sandbox.getInfo()
  is([info.sandboxId, info.templateId, info.state, info.metadata], [sandbox.sandboxId, 'base', 'running', { task: '1', user: 'a b&c' }])
  if (info.cpuCount < 1 || Math.abs(info.endAt - info.startedAt - 120_000) > 1000) throw new Error(JSON.stringify(info))
})
await step('a later deadline', async () => {
  await sandbox.setTimeout(300_000)
  const left = (await sandbox.getInfo()).endAt - Date.now()
  if (left < 290_000 || left > 301_000) throw new Error(left)
})
await step('metrics', async () => {
  const [now] = await sandbox.getMetrics()
  if (!(now.memUsed > 0) || !(now.cpuCount > 0) || !(now.diskUsed > 8 << 20)) throw new Error(JSON.stringify(now))
})
await step('list', async () => {
  const list = await Sandbox.list().nextItems()
  is(list.map((s) => s.sandboxId), [sandbox.sandboxId])
})
await step('list by metadata', async () => {
  is((await Sandbox.list({ query: { metadata: { user: 'a b&c' } } }).nextItems()).length, 1)
  is((await Sandbox.list({ query: { metadata: { user: 'a' } } }).nextItems()).length, 0)
})
await step('list by state', async () => is((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).length, 0))
await step('connect', async () => {
  const same = await Sandbox.connect(sandbox.sandboxId)
  is((await same.commands.run('cat new/c.txt')).stdout, 'through')
})
await step('pause with memory', async () => {
  const counter = await commands.run('n=0; while sleep 0.02; do n=$((n+1)); echo $n >count; done', { background: true, timeoutMs: 0 })
  await until(() => files.exists('count'))
  is([await sandbox.pause(), await Sandbox.pause(sandbox.sandboxId)], [true, false])
  is([(await sandbox.getInfo()).state, await sandbox.isRunning()], ['paused', false])
  await throws(SandboxNotFoundError, () => commands.run('true'))
  await sandbox.connect({ timeoutMs: 100_000 })
  const before = Number(await files.read('count'))
  await until(async () => Number(await files.read('count')) > before)
  is(await commands.kill(counter.pid), true)
})
await step('pause with files', async () => {
  is(await sandbox.pause({ keepMemory: false }), true)
  await sandbox.connect()
  is([await files.read('new/c.txt'), (await commands.list()).length], ['through', 0])
})
await step('kill what is paused', async () => {
  const held = await Sandbox.create({ timeoutMs: 60_000 })
  is([await held.pause(), (await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).map((s) => s.sandboxId)], [true, [held.sandboxId]])
  await throws(Error, () => held.setTimeout(60_000), '409')
  is([await held.kill(), await held.kill()], [true, false])
})
await step('a snapshot', async () => {
  const { snapshotId } = await sandbox.createSnapshot({ name: 'kept' })
  const copy = await Sandbox.create(snapshotId)
  is([await copy.files.read('new/c.txt'), (await copy.commands.run('pwd')).stdout], ['through', '/home/user\n'])
  is((await Sandbox.listSnapshots().nextItems()).map((s) => s.snapshotId), ['kept'])
  is((await Sandbox.list({ limit: 1 }).nextItems()).map((s) => s.sandboxId), [copy.sandboxId])
  const pages = Sandbox.list({ limit: 1 })
  let all = 0
  while (pages.hasNext) all += (await pages.nextItems()).length
  is(all, 2)
  is(await copy.kill(), true)
  is([await Sandbox.deleteSnapshot('kept'), await Sandbox.deleteSnapshot('kept')], [true, false])
})

// What is refused.
await step('no such template', async () => throws(Error, () => Sandbox.create('nothing'), '404: template "nothing" not found'))
await step('a network that cannot be', async () => throws(Error, () => Sandbox.create({ network: { allowOut: ['example.org'], denyOut: ['0.0.0.0/0'] } }), '403'))
await step('no network', async () => {
  const alone = await Sandbox.create({ allowInternetAccess: false })
  is(await alone.kill(), true)
})
await step('volumes', async () => throws(Error, () => Sandbox.create({ volumeMounts: { '/data': 'v' } }), '400: volumeMounts'))
await step('a pause at the deadline', async () => throws(Error, () => Sandbox.create({ lifecycle: { onTimeout: 'pause' } }), '400: autoPauseMemory'))
await step('a fork', async () => throws(Error, () => sandbox.fork(), '501'))
await step('another key', async () => throws(AuthenticationError, () => Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(64) })))
await step('another account', async () => {
  const apiKey = process.env.E2B_TEST_OTHER_KEY
  await throws(SandboxNotFoundError, () => Sandbox.getInfo(sandbox.sandboxId, { apiKey }))
  await throws(SandboxNotFoundError, () => Sandbox.connect(sandbox.sandboxId, { apiKey }))
  await throws(SandboxNotFoundError, () => Sandbox.setTimeout(sandbox.sandboxId, 1000, { apiKey }))
  is([await Sandbox.kill(sandbox.sandboxId, { apiKey }), (await Sandbox.list({ apiKey }).nextItems()).length], [false, 0])
})
await step('more than the quota', async () => throws(RateLimitError, async () => {
  const more = []
  try {
    for (;;) more.push(await Sandbox.create({ timeoutMs: 60_000, retries: 0 }))
  } finally {
    for (const s of more) await s.kill()
  }
}))
await step('a deadline', async () => {
  const short = await Sandbox.create({ timeoutMs: 1000 })
  await until(async () => !(await short.isRunning()))
  await until(async () => !(await short.kill()))
})
await step('kill', async () => {
  const begun = throws(Error, () => commands.run('sleep 100'))
  await until(async () => (await commands.list()).length === 1)
  is([await sandbox.kill(), await sandbox.kill(), await sandbox.isRunning()], [true, false, false])
  await begun
  await throws(SandboxNotFoundError, () => commands.run('true'))
})

console.log(JSON.stringify({ steps, failures }))
process.exit(failures ? 1 : 0)
