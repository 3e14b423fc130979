package vm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/vm/lima"
)

// Process is a program inside that has the terminal of this machine.
type Process struct {
	Argv []string // the command line on this machine

	id string   // names the file inside with the program's process id; "" if there is none
	vm *lima.VM // that it runs in
}

// processScript writes the process id of a program and when that process began to a file,
// and becomes the program. Files of processes that have ended are removed.
const processScript = `for f in /tmp/atoll-process.*; do
	[ ! -r "$f" ] || { read -r p _ <"$f"; [ -d "/proc/$p" ] || rm -f "$f"; }
done
(umask 077; set -C; echo "$$ $(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)" >"/tmp/atoll-process.$0")
exec "$@"`

// newProcess returns a program inside, in a directory. before are the words that say
// as whom it runs; without argv it is a login shell.
func newProcess(v *lima.VM, workdir string, before, argv []string) *Process {
	p := &Process{id: rand.Text(), vm: v}
	if len(argv) == 0 {
		argv = []string{"sh", "-c", `exec "${SHELL:-/bin/sh}" -l`}
	}
	words := append(append([]string{}, before...), "sh", "-c", processScript, p.id)
	p.Argv = v.ShellArgs(workdir, append(words, argv...)...)
	return p
}

// signalPatience is how long the virtual machine may take to pass a signal on.
const signalPatience = 10 * time.Second

var errNotKnown = errors.New("the process id of the program inside is not known")

// Signal sends a signal to the program inside, by its name without SIG. A program that has
// ended gets none; another process with its id is not taken for it.
func (p *Process) Signal(ctx context.Context, name string) error {
	if p.id == "" {
		return errNotKnown
	}
	ctx, cancel := context.WithTimeout(ctx, signalPatience)
	defer cancel()
	_, err := p.vm.Run(ctx, fmt.Sprintf(`f=/tmp/atoll-process.%s; [ -e $f ] || exit 0; read -r p began <$f
[ "$(sed 's/.*) //' /proc/$p/stat 2>/dev/null | cut -d' ' -f20)" != "$began" ] || kill -%s "$p"`, p.id, name), nil)
	return err
}
