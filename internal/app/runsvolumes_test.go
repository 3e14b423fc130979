package app_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// storeOf builds the image with the packages of a lockfile, from OpenClaw's own,
// which `make openclaw` makes.
func storeOf(t *testing.T, a *app.App, lockfile []byte) string {
	t.Helper()
	engine, err := a.ImageEngine(t.Context(), "docker")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := image.Find("pnpm-store")
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	ref, err := image.Build(t.Context(), engine, recipe, image.Options{Lockfile: lockfile, Network: "host"}, &progress)
	if err != nil {
		t.Fatalf("%v: run make openclaw\n%s", err, &progress)
	}
	return ref
}

// A run installs a project's packages without a network, from the store that was
// filled once. What it adds there is gone with it, and a run that comes before
// the store is filled does without.
func TestRunInstallsFromTheSharedStore(t *testing.T) {
	lockfile, err := os.ReadFile("../runtime/image/testdata/pnpm-lock.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.set("runs.variants.node", map[string]any{
		"image": config.DefaultOpenClawImage, "user": "1001:1001", "argv": []string{"/bin/sh", "-c", "{task}"}, "read": "text", "volumes": []string{provide.PnpmStore},
		"files": map[string]string{"pnpm-lock.yaml": string(lockfile), "package.json": `{"private":true,"dependencies":{"is-number":"7.0.0"}}`},
	})
	b := openBureau(s, execute.Options{})
	install := func(id string) *run.Receipt {
		task := scriptTask(id, `test ! -e /pnpm-store/v10/trace && { test ! -e /pnpm-store/v10 || touch /pnpm-store/v10/trace; } && pnpm install --offline --frozen-lockfile >&2 && node -p 'require("is-number")(5)'`)
		task.Variant = "node"
		return b.do(task)
	}
	if r := install("early"); codeOf(r) != "agent_failed" {
		t.Errorf("without a store: %q, %+v", r.Text, r.Error)
	}
	if _, _, err := b.app.SeedVolume(t.Context(), "docker", provide.PnpmStore, storeOf(t, b.app, lockfile), &strings.Builder{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.app.RemoveVolume(context.WithoutCancel(t.Context()), "docker", provide.PnpmStore); err != nil {
			t.Error(err)
		}
	})
	for _, id := range []string{"first", "second"} {
		if r := install(id); r.Error != nil || r.Text != "true" {
			t.Errorf("%s: %q, %+v", id, r.Text, r.Error)
		}
	}
	v, err := b.app.Volume(t.Context(), "docker", provide.PnpmStore)
	if err != nil || len(v.UsedBy) > 0 {
		t.Errorf("layers are left: %+v, %v", v, err)
	}
	b.nothingLeft()
}
