package headstart

import "strings"

// maxFlags is how often a flag may be given.
const maxFlags = 32

// line is a command line of exec, as far as it can be carried out here.
type line struct {
	stdin        bool
	workdir, ref string
	files, vars  list
	argv         []string
}

// list is a few strings.
type list struct {
	items [maxFlags]string
	count int
}

func (l *list) add(s string) bool {
	if l.count == len(l.items) {
		return false
	}
	l.items[l.count] = s
	l.count++
	return true
}

func (l *list) all() []string { return l.items[:l.count] }

// read reads the flags that programs use. Whoever uses others can wait.
func (l *line) read(args []string) bool {
	if len(args) == 0 || args[0] != "exec" {
		return false
	}
	args = args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-i" || args[0] == "--interactive" {
			l.stdin, args = true, args[1:]
			continue
		}
		if len(args) < 2 || !l.flag(args[0], args[1]) {
			return false
		}
		args = args[2:]
	}
	if len(args) < 2 || args[1] == "" || l.workdir != "" && !strings.HasPrefix(l.workdir, "/") {
		return false
	}
	l.ref, l.argv = args[0], args[1:]
	return true
}

func (l *line) flag(name, value string) bool {
	switch name {
	case "-w", "--workdir":
		l.workdir = value
		return true
	case "-e", "--env":
		return l.vars.add(value)
	case "--env-file":
		return l.files.add(value)
	}
	return false
}
