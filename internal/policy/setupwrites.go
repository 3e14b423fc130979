package policy

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/policy/shell/script"
)

// writer is a program that writes to files that its arguments name.
type writer struct {
	valued string // short options that take a value
	all    bool   // every operand is written, not only the last of several
}

// fileWriters are the programs whose targets are known.
var fileWriters = map[string]writer{
	"cp": {valued: "tS"}, "mv": {valued: "tS"}, "ln": {valued: "tS"}, "install": {valued: "tSmog"},
	"tee": {all: true}, "touch": {valued: "rdt", all: true},
}

// careful are options with which a program may leave its target alone.
var careful = strings.Fields("-n -u -c -d --no-clobber --update --no-create --directory --help --version")

// writtenBy lists the files and directories that a command writes to for certain.
func writtenBy(c script.Command) []string {
	w, ok := fileWriters[c.Name]
	if !ok {
		return nil
	}
	into, operands, ok := w.read(c.Args)
	switch {
	case !ok:
		return nil
	case into != "" && !w.all:
		return []string{into}
	case w.all:
		return operands
	case len(operands) < 2:
		return nil // ln makes a link of that name where it is
	}
	return operands[len(operands)-1:]
}

// read splits arguments into the target directory that was given as an option,
// and the operands. It is not ok if an option is not understood.
func (w writer) read(args []string) (into string, operands []string, ok bool) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		dir, isInto := strings.CutPrefix(arg, "--target-directory=")
		switch {
		case arg == "--":
			return into, append(operands, args[i+1:]...), true
		case !strings.HasPrefix(arg, "-") || arg == "-":
			operands = append(operands, arg)
		case isInto:
			into = dir
		case slices.Contains(careful, arg) || strings.HasPrefix(arg, "--"):
			return "", nil, false
		default:
			value, takes, known := w.short(arg[1:])
			if !known {
				return "", nil, false
			}
			if takes && value == "" && i+1 < len(args) {
				i++
				value = args[i]
			}
			if strings.Contains(arg, "t") && takes {
				into = value
			}
		}
	}
	return into, operands, true
}

// short reads a group of short options. The value of the last one is in the same
// word, or takes says that it is in the next.
func (w writer) short(group string) (value string, takes, known bool) {
	for i, option := range group {
		if slices.Contains(careful, "-"+string(option)) {
			return "", false, false
		}
		if strings.ContainsRune(w.valued, option) {
			return group[i+1:], true, true
		}
	}
	return "", false, true
}
