package headstart

import (
	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"golang.org/x/sys/unix"
)

// maxRead is the most that is read of a file.
const maxRead = 24 << 10

// find reads the entry of the container that the line names.
func (c *call) find(state string) (e entry.Entry, ok bool) {
	name := c.line.ref
	byID := !entry.IsName(name) || len(name) > entry.MaxName
	if byID {
		if len(name) != entry.FullID || !entry.IsID(name) {
			return e, false
		}
		name = c.readLink(state, "/"+entry.RecordsDir+"/"+entry.IDsDir+"/", name)
	}
	if !entry.IsName(name) {
		return e, false
	}
	record, _ := c.readFile(maxRead, state, "/"+entry.RecordsDir+"/", name, entry.RecordKind)
	text, _, ok := entry.Cut(record)
	if !ok || text == "" {
		return e, false
	}
	e, ok = entry.Parse(text)
	return e, ok && (!byID || e.ID == c.line.ref) && e.Socket != "" && e.Paused != entry.Yes && e.Process != "" && e.Attached != entry.Yes
}

// share shares the sandbox's lease: nobody ends the sandbox under the command.
func (c *call) share(state string, e *entry.Entry) bool {
	place, ok := entry.Number(e.Place)
	if !ok || !c.lease.open(c.path(state, "/"+entry.LeasesFile), unix.O_RDWR) {
		return false
	}
	return c.lease.lockShared(place)
}

// readFile reads the beginning of a file; whole is whether that is all of it.
func (c *call) readFile(most int, path ...string) (text string, whole bool) {
	var file descriptor
	if !file.open(c.path(path...), unix.O_RDONLY) {
		return "", false
	}
	text, whole = c.readAll(&file, most)
	file.close()
	return text, whole
}

func (c *call) readAll(file *descriptor, most int) (text string, whole bool) {
	at := c.used
	end := min(at+most, len(c.text))
	for c.used < end {
		n, ok := file.read(c.text[c.used:end])
		if !ok || n == 0 {
			return c.since(at), ok
		}
		c.used += n
	}
	return c.since(at), false
}

// readLink is where a link points to, "" if it is none.
func (c *call) readLink(path ...string) string {
	link := c.path(path...)
	at := c.used
	if link == nil || at == len(c.text) {
		return ""
	}
	n := readLink(link, c.text[at:])
	if n <= 0 || n == len(c.text)-at {
		return ""
	}
	c.used += n
	return c.since(at)
}

// readPlain reads a whole file, if it is a plain one: others may give what they
// hold only once.
func (c *call) readPlain(path string) (string, bool) {
	var file descriptor
	if !file.open(c.path(path), unix.O_RDONLY|unix.O_NONBLOCK) {
		return "", false
	}
	text, whole := "", false
	if file.kind() == unix.S_IFREG {
		text, whole = c.readAll(&file, maxRead)
	}
	file.close()
	return text, whole
}
