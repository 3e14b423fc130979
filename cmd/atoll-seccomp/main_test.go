package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProfileIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	if err := keep(t.Context(), dir, 0); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, profile)
	var filter struct{ DefaultAction string }
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &filter) != nil || filter.DefaultAction != "SCMP_ACT_ERRNO" {
		t.Fatalf("%v: %s", err, text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- keep(ctx, dir, time.Millisecond) }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it was not written again")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	if err := keep(t.Context(), "/proc", 0); err == nil {
		t.Error("no error")
	}
}
