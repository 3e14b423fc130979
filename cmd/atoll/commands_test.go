//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

// commands are what scripts can say besides testscript's own.
func commands() map[string]command {
	return map[string]command{
		"exits":     exits,
		"github":    serveGitHub,
		"halt":      halt,
		"identity":  identity,
		"internet":  serveInternet,
		"json":      checkJSON,
		"leads":     leads,
		"litellm":   serveLiteLLM,
		"lose":      lose,
		"mends":     mends,
		"prefixed":  prefixed,
		"sandboxes": sandboxes,
		"save":      save,
		"until":     until,
		"unused":    unused,
		"size":      size,
	}
}

// exits CODE PROGRAM ARG…: the program ends with exactly this code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// litellm: serves models as LiteLLM does, at $LITELLM, while the script runs.
func serveLiteLLM(ts *testscript.TestScript, _ bool, _ []string) {
	server, err := litellmtest.Listen(context.Background(), "tcp", "127.0.0.1:0", litellmtest.Options{
		MasterKey: "sk-master-0123456789-of-the-upstream",
		Models: map[string]litellmtest.Model{
			"words": {Answer: "one two three", Input: 1e-06, Output: 1e-05}, "other": {},
			"recall": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{
				fakellm.Use("memory_search", `{"query":"whom to ask concerning an invoice"}`), fakellm.Say("looked up"),
			}},
			"caller": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{ // a program that a tool starts calls it too
				fakellm.Use("exec", `{"command":"curl -sS -H 'Content-Type: application/json' -d '{\"model\":\"caller\",\"messages\":[]}' http://localhost:8080/v1/chat/completions"}`),
				{Text: "the program was answered", When: "chat.completion"},
			}},
			"sense": {Input: 1e-05},                                                        // makes vectors
			"many":  {Answer: strings.Repeat("word ", 30000), Input: 1e-06, Output: 1e-05}, // 30 cents
		},
	})
	ts.Check(err)
	ts.Defer(func() { _ = server.Close() })
	ts.Setenv("LITELLM", server.URL())
}

// internet: serves every name as a web server by the proxy $INTERNET, while the script
// runs. ca.pem has its certificate.
func serveInternet(ts *testscript.TestScript, _ bool, _ []string) {
	n, err := internettest.Start(internettest.Hello())
	ts.Check(err)
	ts.Defer(func() { _ = n.Close() })
	ts.Setenv("INTERNET", n.Proxy)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), n.CA, 0o644))
}

// github: serves GitHub's API by the proxy $INTERNET to who has the token $GITHUB_SECRET,
// while the script runs. ca.pem has its certificate.
func serveGitHub(ts *testscript.TestScript, _ bool, _ []string) {
	token := "ghp_" + rand.Text() + rand.Text()[:10]
	n, err := internettest.Start(&fakeGitHub{token: token})
	ts.Check(err)
	ts.Defer(func() { _ = n.Close() })
	ts.Setenv("INTERNET", n.Proxy)
	ts.Setenv("GITHUB_SECRET", token)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), n.CA, 0o644))
}

// prefixed FILE…: replaces @PREFIX@, @BACKEND@, @WORK@, @HOME@, @LITELLM@ and
// @INTERNET@ in the files.
func prefixed(ts *testscript.TestScript, _ bool, args []string) {
	replacer := strings.NewReplacer("@PREFIX@", ts.Getenv("PREFIX"), "@BACKEND@", ts.Getenv("BACKEND"), "@WORK@", ts.Getenv("WORK"), "@HOME@", ts.Getenv("HOME"),
		"@LITELLM@", ts.Getenv("LITELLM"), "@INTERNET@", ts.Getenv("INTERNET"))
	for _, name := range args {
		text := replacer.Replace(ts.ReadFile(name))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

const (
	patience = 20 * time.Second
	poll     = 20 * time.Millisecond
)

// until PROGRAM ARG…: runs the program again and again until it succeeds.
func until(ts *testscript.TestScript, neg bool, args []string) {
	for deadline := time.Now().Add(patience); ; time.Sleep(poll) {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("still not after %v: %v", patience, err)
		}
	}
}

// unused NAME DURATION: makes the registry believe that the sandbox was last
// used, and made, so long ago.
func unused(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(ts.Getenv("ATOLL_STATE_DIR"), "atoll.db"))
	ts.Check(err)
	defer db.Close()
	registry := sandbox.NewRegistry(db)
	entry, err := registry.Get(ctx, args[0])
	ts.Check(err)
	entry.LastUsedAtMs -= d.Milliseconds()
	entry.CreatedAtMs -= d.Milliseconds()
	ts.Check(registry.Put(ctx, entry))
}

// size FILE BYTES: the file (or stdout, stderr) is so long.
func size(ts *testscript.TestScript, _ bool, args []string) {
	if got := len(ts.ReadFile(args[0])); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s has %d bytes, want %s", args[0], got, args[1])
	}
}
