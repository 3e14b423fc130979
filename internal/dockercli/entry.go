package dockercli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A record begins with its entry: what it takes to run a command in the
// container while that runs. It stands there once more, as a number of bytes and
// as many bytes of fields, because to read a whole record as JSON takes a small
// program longer than all else that it does for a short command.
const (
	entryMark = "entry "
	fieldEnd  = "\x00"
)

var errEntry = errors.New("its entry is malformed")

// The fields of an entry. The environment follows them.
const (
	entryID = iota
	entryName
	entryHostname
	entryWorkdir
	entryUser
	entryHome
	entryProcess
	entryAttached
	entrySocket
	entryPID
	entryBirth
	entryLease
	entryPaused
	entryEnv
)

// entry is that of a container, "" if it cannot be told as fields.
func (c *Container) entry() string {
	var g Guest
	if c.Guest != nil {
		g = *c.Guest
	}
	fields := [entryEnv]string{
		entryID: c.ID, entryName: c.Name, entryHostname: c.Hostname, entryWorkdir: c.Workdir, entryUser: c.User, entryHome: c.Home,
		entryProcess: c.Main.Process, entryAttached: strconv.FormatBool(c.Main.Attached),
		entrySocket: g.Socket, entryPID: strconv.Itoa(g.PID), entryBirth: g.Birth, entryLease: g.Lease, entryPaused: strconv.FormatBool(g.Paused),
	}
	all := append(fields[:], c.Env...)
	if slices.ContainsFunc(all, func(field string) bool { return strings.Contains(field, fieldEnd) }) {
		return ""
	}
	text := strings.Join(all, fieldEnd)
	return entryMark + strconv.Itoa(len(text)) + "\n" + text
}

// splitEntry takes a record apart.
func splitEntry(record string) (entry, rest string, err error) {
	sized, ok := strings.CutPrefix(record, entryMark)
	if !ok {
		return "", record, nil
	}
	size, rest, _ := strings.Cut(sized, "\n")
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 || n > len(rest) {
		return "", "", errEntry
	}
	return rest[:n], rest[n:], nil
}

// readToEnter reads no more than the entry, if there is one.
func readToEnter(record string) (*Container, error) {
	entry, _, err := splitEntry(record)
	switch {
	case err != nil:
		return nil, err
	case entry == "":
		return readWhole(record)
	}
	f := strings.Split(entry, fieldEnd)
	if len(f) < entryEnv {
		return nil, errEntry
	}
	c := &Container{
		ID: f[entryID], Name: f[entryName], Hostname: f[entryHostname], Workdir: f[entryWorkdir], User: f[entryUser], Home: f[entryHome],
		Env: f[entryEnv:], Main: Life{Process: f[entryProcess], Attached: f[entryAttached] == "true"},
	}
	if f[entrySocket] != "" {
		c.Guest = &Guest{Socket: f[entrySocket], Birth: f[entryBirth], Lease: f[entryLease], Paused: f[entryPaused] == "true"}
		c.Guest.PID, err = strconv.Atoi(f[entryPID])
	}
	return c, err
}
