// Command atoll-guest is the program inside a sandbox. As its process 1 it
// starts, reaps and ends all others and serves the host on a socket.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/atoll-run/atoll/internal/guest"
	"github.com/atoll-run/atoll/internal/guest/ownnet"
	"github.com/atoll-run/atoll/internal/guest/probe"
	"github.com/atoll-run/atoll/internal/guest/setup"
	"github.com/atoll-run/atoll/internal/guest/sftp"
)

const usage = `usage:
  atoll-guest init --socket PATH [--trust-uid] [--listener FD] [--own-network] [--no-namespaces] [--reattach TIME]
                   [--quota-dir PATH… --quota-upper PATH=MERGED… --quota-size N --quota-files N --quota-reserve N]
                                                 serve the host, as process 1
  atoll-guest setup                              build a sandbox of the Linux runtime, then serve inside
  atoll-guest install DIRECTORY                  copy this program there, for a sandbox that may run it and not read it
  atoll-guest pass --socket PATH [--trust-uid]   pass standard input and output on to process 1
                   [--many]                      they carry several connections
  atoll-guest lookup NAME                        print the addresses of a host
  atoll-guest connect ADDRESS:PORT [TIME]        pass bytes to and from a connection that is made within a time
  atoll-guest probe                              print what this sandbox lets a program see and do
  atoll-guest sftp                               serve files over SFTP, on standard input and output
  atoll-guest version                            print the build
`

const defaultSocket = "/.atoll/wire/guest.sock"

func main() {
	if len(os.Args) < 2 {
		fail(2, usage)
	}
	switch os.Args[1] {
	case "init":
		serve(os.Args[2:])
	case "setup":
		if setup.Run() != nil {
			os.Exit(1) // the runtime has the reason
		}
	case ownnet.Verb: // of the guest itself
		if guest.ServeNetwork(len(os.Args) > 2 && os.Args[2] == ownnet.Again) != nil {
			os.Exit(1)
		}
	case "install":
		install(os.Args[2:])
	case "pass":
		pass(os.Args[2:])
	case "lookup", "connect":
		useNetwork(os.Args[1], os.Args[2:])
	case "probe":
		if err := probe.Run(os.Stdout); err != nil {
			fail(1, "atoll-guest: "+err.Error()+"\n")
		}
	case "sftp":
		if err := sftp.Run(os.Stdin, os.Stdout); err != nil {
			fail(1, "atoll-guest: "+err.Error()+"\n")
		}
	case "version":
		fmt.Fprintln(os.Stdout, build())
	default:
		fail(2, usage)
	}
}

// serve is process 1. Its exit status is the sandbox's.
func serve(args []string) {
	var options guest.Options
	flags := flag.NewFlagSet("init", flag.ExitOnError)
	flags.StringVar(&options.Socket, "socket", defaultSocket, "where the host connects")
	flags.BoolVar(&options.TrustUID, "trust-uid", false, "admit every process of the same user, not only ones outside the pid namespace")
	flags.IntVar(&options.Listener, "listener", 0, "an inherited `descriptor` that listens there")
	flags.BoolVar(&options.OwnNetwork, "own-network", false, "give all processes a network namespace of their own")
	flags.BoolVar(&options.NoNamespaces, "no-namespaces", false, "let no process make or enter namespaces")
	flags.DurationVar(&options.Reattach, "reattach", 0, "how long a command runs on after its host was cut off (default 1m)")
	flags.Int64Var(&options.Quota.Size, "quota-size", 0, "how many `bytes` the directories of the quota may hold")
	flags.Int64Var(&options.Quota.Files, "quota-files", 0, "how many `files` they may hold")
	flags.Int64Var(&options.Quota.Reserve, "quota-reserve", 0, "how many `bytes` must stay free on their disks")
	flags.Func("quota-dir", "a `directory` of the quota", func(dir string) error {
		options.Quota.Dirs = append(options.Quota.Dirs, dir)
		return nil
	})
	flags.Func("quota-upper", "the upper directory of an overlay, and where that is mounted: `DIR=MERGED`", func(text string) error {
		options.Quota.AddUpper(text)
		return nil
	})
	_ = flags.Parse(args)
	if err := guest.Harden(options.Listener); err != nil {
		fail(1, "atoll-guest: "+err.Error()+"\n")
	}
	var err error
	if options.OpenFiles, err = guest.OpenFilesLimit(); err != nil {
		fail(1, "atoll-guest: open files: "+err.Error()+"\n")
	}
	options.Build = build()
	if err := guest.Run(context.Background(), &options); err != nil {
		fail(1, "atoll-guest: "+err.Error()+"\n")
	}
}

// pass connects an engine's exec with process 1.
func pass(args []string) {
	flags := flag.NewFlagSet("pass", flag.ExitOnError)
	var options guest.BridgeOptions
	flags.StringVar(&options.Socket, "socket", defaultSocket, "where the guest listens")
	flags.BoolVar(&options.TrustUID, "trust-uid", false, "take every process of the same user for it, not only process 1")
	many := flags.Bool("many", false, "the streams carry several connections")
	_ = flags.Parse(args)
	bridge := guest.BridgeStdio
	if *many {
		bridge = guest.BridgeMany
	}
	if err := bridge(context.Background(), &options, os.Stdin, os.Stdout); err != nil {
		fail(1, "atoll-guest: "+err.Error()+"\n")
	}
}

// install puts this program into a directory of a sandbox that is about to be made.
func install(args []string) {
	if len(args) != 1 {
		fail(2, usage)
	}
	if err := guest.Install(args[0]); err != nil {
		fail(1, "atoll-guest: "+err.Error()+"\n")
	}
}

// build names the source this program was made from.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

func fail(code int, message string) {
	fmt.Fprint(os.Stderr, message)
	os.Exit(code)
}
