// Serves the archives of /build/packages on loopback, at the addresses that a registry
// of npm has for them, and writes its port to the file that is its argument.
const fs = require('fs')
const http = require('http')

const archives = new Map()
for (const line of fs.readFileSync('/build/list', 'utf8').split('\n').filter(Boolean)) {
  const [file, name, version] = line.split(' ')
  archives.set(`/${name}/-/${name.split('/').pop()}-${version}.tgz`, `/build/packages/${file}`)
}
const server = http.createServer((request, response) => {
  const file = archives.get(decodeURIComponent(request.url))
  if (!file) {
    response.writeHead(404).end('{}')
    return
  }
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': fs.statSync(file).size })
  fs.createReadStream(file).pipe(response)
})
server.listen(0, '127.0.0.1', () => fs.writeFileSync(process.argv[2], String(server.address().port)))
