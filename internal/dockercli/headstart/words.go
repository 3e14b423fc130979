package headstart

import (
	"strings"
	"unsafe"
)

// vector is strings as the kernel passes them: pointers to bytes that end with
// zero, and at last nil.
type vector struct{ first unsafe.Pointer }

// vectors are the arguments and the environment on a process's first stack.
func vectors(stack unsafe.Pointer) (args, environ vector) {
	count := *(*int)(stack)
	args = vector{unsafe.Add(stack, unsafe.Sizeof(count))}
	return args, vector{unsafe.Add(args.first, (count+1)*int(unsafe.Sizeof(stack)))}
}

// at is the string at an index, ok is false behind the last.
func (v vector) at(i int) (s string, ok bool) {
	first := *(*unsafe.Pointer)(unsafe.Add(v.first, i*int(unsafe.Sizeof(v.first))))
	if first == nil {
		return "", false
	}
	length := 0
	for *(*byte)(unsafe.Add(first, length)) != 0 {
		length++
	}
	return unsafe.String((*byte)(first), length), true
}

// lookup is the value of a variable: that of the first of its name.
func (v vector) lookup(name string) string {
	for i := 0; ; i++ {
		entry, ok := v.at(i)
		if !ok {
			return ""
		}
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value
		}
	}
}

// words are the arguments without the program's name.
func (c *call) words(args vector) ([]string, bool) {
	for i := range c.args {
		word, ok := args.at(i)
		if !ok {
			return c.args[min(i, 1):i], true
		}
		c.args[i] = word
	}
	return nil, false
}

// stateDir is where Atoll keeps its state. A path that could be read in two ways
// is for others to read.
func (c *call) stateDir(environ vector) (string, bool) {
	dir := environ.lookup("ATOLL_STATE_DIR")
	if dir == "" {
		home := environ.lookup("HOME")
		if home == "" {
			return "", false
		}
		dir = c.join(home, "/.atoll")
	}
	return dir, strings.HasPrefix(dir, "/") && !strings.Contains(dir, "..")
}

// join puts strings together; it is "" if there is no room.
func (c *call) join(parts ...string) string {
	at := c.used
	for _, part := range parts {
		if len(part) > len(c.text)-c.used {
			return ""
		}
		c.used += copy(c.text[c.used:], part)
	}
	return c.since(at)
}

// since is what was put down from an offset on.
func (c *call) since(at int) string {
	return unsafe.String(unsafe.SliceData(c.text[at:]), c.used-at)
}

// path is a path for the kernel, nil if there is no room.
func (c *call) path(parts ...string) unsafe.Pointer {
	at := c.used
	for _, part := range parts {
		if strings.IndexByte(part, 0) >= 0 || c.join(part) == "" && part != "" {
			return nil
		}
	}
	if c.join("\x00") == "" {
		return nil
	}
	return unsafe.Pointer(&c.text[at])
}
