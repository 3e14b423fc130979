package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Terminal is the program's outside: streams and environment.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
}

// The exit codes of docker itself.
const (
	exitFailure = 1
	exitUsage   = 125 // flags that are not known, and whatever keeps `run` from running
)

// errHelp is a request for help instead of work.
var errHelp = errors.New("help is asked for")

// cli is one command line at work.
type cli struct {
	*Terminal
	entry      Entry
	containers Containers // nil on the fast path
	images     Images     // nil on the fast path
	records    *recordStore
}

// verb is one thing to do.
type verb struct {
	usage string // what follows "docker"
	least int    // arguments
	most  int    // -1: any number
	flags func(*flagSet)
	run   func(ctx context.Context, args []string) error
}

// Main runs one docker command line and returns its exit code.
func Main(ctx context.Context, args []string, t *Terminal, all Sandboxes) int {
	c := &cli{Terminal: t, entry: all, containers: all, images: all, records: &recordStore{dir: all.Dir()}}
	return c.report(interrupted(ctx, c.main(ctx, args)))
}

// exitInterrupted is the code of a client that was interrupted.
const exitInterrupted = 130

// interrupted returns err, or exit code 130 without a message if the error only
// says that this process was interrupted.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return &exitError{code: exitInterrupted}
	}
	return err
}

// Fast runs a command line on the fast path; done is false, and nothing has
// happened, if the full program is needed.
func Fast(ctx context.Context, args []string, t *Terminal, entry Entry) (code int, done bool) {
	if len(args) == 0 || args[0] != "exec" && args[0] != "inspect" && args[0] != "version" {
		return 0, false
	}
	c := &cli{Terminal: t, entry: entry, records: &recordStore{dir: entry.Dir()}}
	err := interrupted(ctx, c.main(ctx, args))
	if errors.Is(err, ErrElsewhere) {
		return 0, false
	}
	return c.report(err), true
}

func (c *cli) main(ctx context.Context, args []string) error {
	args, err := c.global(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		fmt.Fprint(c.Err, overview())
		return nil
	}
	name := args[0]
	if name == "help" {
		return c.helpOn(ctx, args[1:])
	}
	if group, ok := groupTable()[name]; ok {
		return c.grouped(ctx, name, group, args[1:])
	}
	return c.plain(ctx, name, name, args[1:])
}

// global reads what stands before the verb.
func (c *cli) global(args []string) ([]string, error) {
	var version bool
	var ignored string
	flags := &flagSet{}
	flags.boolean(&version, "version", "v")
	flags.text(&ignored, "log-level", "l")
	flags.refuse(whyNoHost,
		"host,H", "context,c", "tls!", "tlsverify!", "tlscacert", "tlscert", "tlskey")
	flags.text(&ignored, "config", "") // holds credentials of registries, which have no use here
	flags.boolean(new(bool), "debug", "D")
	rest, err := flags.parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(c.Out, overview())
		return nil, &exitError{}
	case err != nil:
		return nil, &usageError{err: err, path: "docker", line: "docker [OPTIONS] COMMAND [ARG...]"}
	case version:
		fmt.Fprintf(c.Out, "Docker version %s, build %s\n", emulatedVersion, buildName())
		return nil, &exitError{}
	}
	return rest, nil
}

// grouped runs "docker container ls" and its like.
func (c *cli) grouped(ctx context.Context, name string, group map[string]string, args []string) error {
	switch {
	case len(args) == 0:
		fmt.Fprint(c.Err, groupHelp(name))
		return nil
	case args[0] == "--help" || args[0] == "-h":
		fmt.Fprint(c.Out, groupHelp(name))
		return nil
	}
	if plain, ok := group[args[0]]; ok {
		return c.plain(ctx, plain, name+" "+args[0], args[1:])
	}
	if err := refuseVerb(name + " " + args[0]); err != nil {
		return err
	}
	return unknownCommand("docker "+name+" "+args[0]+"\n\nUsage:  docker "+name, "docker "+name)
}

func unknownCommand(what, path string) error {
	return &exitError{code: exitFailure, raw: true, err: fmt.Errorf("docker: unknown command: %s\n\nRun '%s --help' for more information", what, path)}
}

// plain runs one verb, called by path.
func (c *cli) plain(ctx context.Context, name, path string, args []string) error {
	made, ok := verbTable()[name]
	if !ok {
		if err := refuseVerb(name); err != nil {
			return err
		}
		return unknownCommand("docker "+name, "docker")
	}
	v := made(c)
	flags := &flagSet{mixed: true}
	if v.flags != nil {
		v.flags(flags)
	}
	line := "docker " + path + v.usage
	rest, err := flags.parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(c.Out, flags.help(line))
		return nil
	case err != nil:
		return &usageError{err: err, path: "docker " + path, line: line}
	}
	if err := v.count(len(rest)); err != nil {
		return &exitError{code: exitFailure, raw: true, err: fmt.Errorf("docker: 'docker %s' %w\n\nUsage:  %s\n\n%s 'docker %s --help' for more information", path, err, line, v.pointer(), path)}
	}
	return v.run(ctx, rest)
}

// pointer is the word with which docker points to its help.
func (v *verb) pointer() string {
	if v.least != v.most && v.most < 0 {
		return "See"
	}
	return "Run"
}

// count says what is wrong with a number of arguments.
func (v *verb) count(n int) error {
	plural := func(n int) string {
		if n == 1 {
			return "1 argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case n >= v.least && (v.most < 0 || n <= v.most):
		return nil
	case v.most == 0:
		return errors.New("accepts no arguments")
	case v.least == v.most:
		return errors.New("requires " + plural(v.least))
	case v.least > 0 && v.most > 0:
		return fmt.Errorf("requires at least %d and at most %s", v.least, plural(v.most))
	case n < v.least:
		return errors.New("requires at least " + plural(v.least))
	}
	return errors.New("requires at most " + plural(v.most))
}

// usageError is a command line that makes no sense.
type usageError struct {
	err        error
	path, line string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitError ends the program with a code, and perhaps a message.
type exitError struct {
	code int
	err  error
	raw  bool // err is printed as it is
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// plainError is a failure of the command line itself, printed without a prefix.
type plainError struct{ error }

func (e *plainError) Unwrap() error { return e.error }

// report prints an error as docker does and returns the exit code.
func (c *cli) report(err error) int {
	var bad *usageError
	var end *exitError
	var plain *plainError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &plain):
		fmt.Fprintln(c.Err, plain)
		return exitFailure
	case errors.As(err, &bad):
		c.reportUsage(bad)
		return exitUsage
	case errors.As(err, &end) && end.err == nil:
		return end.code
	case errors.As(err, &end) && end.raw:
		fmt.Fprintln(c.Err, end.err)
		return end.code
	case end != nil:
		c.complain(end.err)
		return end.code
	}
	c.complain(err)
	return exitFailure
}

func (c *cli) reportUsage(bad *usageError) {
	if refused, ok := errors.AsType[*refusal](bad); ok {
		fmt.Fprintf(c.Err, "docker: %v\n", refused)
		fmt.Fprintln(c.Err, "hint: "+refused.hint)
		return
	}
	fmt.Fprintf(c.Err, "%v\n\nUsage:  %s\n\nRun '%s --help' for more information\n", bad.err, bad.line, bad.path)
}

// complain prints an error as an engine's answer.
func (c *cli) complain(err error) {
	text := asFlagNames(err.Error())
	_, isLocal := errors.AsType[localError](err)
	if _, isTemplate := errors.AsType[*dockerformat.Error](err); !isLocal && !isTemplate {
		text = "Error response from daemon: " + text
	}
	if _, ok := errors.AsType[*runError](err); ok {
		text = "docker: " + text + "\n\nRun 'docker run --help' for more information"
	}
	fmt.Fprintln(c.Err, text)
	if hint := errhint.Of(err); hint != "" {
		fmt.Fprintln(c.Err, "hint: "+asFlagNames(hint))
	}
}

// asFlagNames replaces names of configuration keys (docker.memory) by those of flags.
func asFlagNames(text string) string {
	return strings.NewReplacer(
		"docker.memorySwap", "--memory-swap", "docker.memory", "--memory", "docker.cpus", "--cpus", "docker.pidsLimit", "--pids-limit",
		"docker.ulimits", "--ulimit", "docker.user", "--user", "docker.network", "--network", "docker.binds", "--volume", "docker.tmpfs", "--tmpfs",
		"docker.capDrop", "--cap-drop", "docker.seccompProfile", "--security-opt seccomp", "docker.apparmorProfile", "--security-opt apparmor",
		"docker.dns", "--dns", "docker.extraHosts", "--add-host", "docker.workdir", "--workdir", "docker.readOnlyRoot", "--read-only",
		"docker.gpus", "--gpus",
	).Replace(text)
}

// localError is an error of the command line itself, not of an engine.
type localError string

func (e localError) Error() string { return string(e) }
