package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/litellm"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
)

const (
	// runKeyLife is that of a key whose run has no end of its own.
	runKeyLife = 24 * time.Hour
	// runKeySpare is how much longer a key lives than its run: requests under way
	// are to end by the run's end, not by the key's.
	runKeySpare = 5 * time.Minute
	// runKeyPatience bounds the making or deleting of a key.
	runKeyPatience = 15 * time.Second
)

// runKeys are the virtual keys of the runs of this process.
type runKeys struct {
	mu  sync.Mutex
	all []*secret.Pool
}

func (k *runKeys) pools() []*secret.Pool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.all)
}

func (k *runKeys) add(p *secret.Pool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, p)
}

func (k *runKeys) remove(p *secret.Pool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = slices.DeleteFunc(k.all, func(each *secret.Pool) bool { return each == p })
}

// makesKeys reports whether any provider makes keys for runs.
func (m *Proxy) makesKeys() bool {
	return slices.ContainsFunc(m.Config.Providers, func(p config.LLMProvider) bool { return p.KeyPerRun })
}

// keysOfRun makes the keys of a run, where they are wanted, and says how to end
// them. A run whose key cannot be made does not begin: the operator wants it
// limited upstream.
func (m *Proxy) keysOfRun(ctx context.Context, terms *grant.Terms, limits []usage.Limit) (map[string]proxy.Keys, func(), error) {
	keys, ends := map[string]proxy.Keys{}, []func(){}
	end := func() {
		for _, e := range ends {
			e()
		}
	}
	for i := range m.Config.Providers {
		p := &m.Config.Providers[i]
		if !p.KeyPerRun {
			continue
		}
		pool, endOne, err := m.keyOfRun(ctx, p, terms, limits)
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("the key of run %s at provider %s: %w", terms.Run, p.Name, err)
		}
		keys[p.Name], ends = pool, append(ends, endOne)
	}
	return keys, end, nil
}

// keyOfRun makes one key. Its name is written down before it is made, and locked
// as long as this process lives: what a crash leaves is found and deleted.
func (m *Proxy) keyOfRun(ctx context.Context, p *config.LLMProvider, terms *grant.Terms, limits []usage.Limit) (*secret.Pool, func(), error) {
	client, err := LiteLLM(m.service.Settings, p)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, runKeyPatience)
	defer cancel()
	note, err := m.noteKey(p.Name, terms.Run)
	if err != nil {
		return nil, nil, err
	}
	if note.left {
		err = client.DeleteRunKey(ctx, terms.Run)
	}
	var key *litellm.RunKey
	if err == nil {
		key, err = client.MakeRunKey(ctx, m.keyRequest(p, terms, limits))
	}
	if err != nil {
		return nil, nil, errors.Join(err, note.file.Close()) // it may have been made all the same
	}
	end := func() { m.endKey(key, note) }
	pool, err := secret.NewPool(ctx, secret.PoolOptions{}, key)
	if err != nil {
		end()
		return nil, nil, err
	}
	m.made.add(pool)
	return pool, func() { m.made.remove(pool); end() }, nil
}

// keyRequest limits a key as its run is limited.
func (m *Proxy) keyRequest(p *config.LLMProvider, terms *grant.Terms, limits []usage.Limit) litellm.KeyRequest {
	r := litellm.KeyRequest{Run: terms.Run, Account: terms.Account, MicroUSD: terms.Budget.MicroUSD, Life: runKeyLife}
	for _, l := range limits {
		if l.Scope == usage.ScopeRun && l.MicroUSD > 0 {
			r.MicroUSD = min(l.MicroUSD, cmp.Or(r.MicroUSD, l.MicroUSD))
		}
	}
	if !terms.Until.IsZero() {
		r.Life = time.Until(terms.Until) + runKeySpare
	}
	for _, model := range terms.Models {
		if strings.HasSuffix(model, "*") {
			r.Models = nil // the proxy knows which; LiteLLM takes names
			break
		}
		if providerOf(&m.Config, model) == p {
			r.Models = append(r.Models, model)
		}
	}
	return r
}

// endKey deletes a key. If that fails, the next process tries again; after its life
// the key expires.
func (m *Proxy) endKey(key *litellm.RunKey, note *keyNote) {
	ctx, cancel := context.WithTimeout(context.Background(), runKeyPatience)
	defer cancel()
	err := key.Delete(ctx)
	if err == nil {
		err = note.forget()
	} else {
		note.file.Close() //nolint:errcheck // that it is not locked any more is all that counts
	}
	if err != nil {
		m.service.Logger.Warn("the key of a run was not deleted yet", "key", key.Name(), "error", err)
	}
}

// keyNote is a file whose name says that there may be a key.
type keyNote struct {
	file *os.File
	left bool // a process that ended wrote it
}

func (m *Proxy) keyNotes() string { return filepath.Join(m.service.Paths.AtollState, "usage", "keys") }

// noteKey writes down that a key is about to be made.
func (m *Proxy) noteKey(provider, run string) (*keyNote, error) {
	if strings.ContainsAny(provider+run, "/\x00") {
		return nil, fmt.Errorf("run %q cannot have a key: its name holds a slash", run)
	}
	if err := os.MkdirAll(m.keyNotes(), 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(m.keyNotes(), provider+"@"+run)
	_, absent := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	n := &keyNote{file, absent == nil}
	if !n.lock() {
		return nil, errors.Join(fmt.Errorf("run %s has a key already", run), file.Close())
	}
	return n, nil
}

// lock locks the note, and reports whether no other process had locked it.
func (n *keyNote) lock() bool {
	return unix.FcntlFlock(n.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}) == nil
}

func (n *keyNote) forget() error { return errors.Join(os.Remove(n.file.Name()), n.file.Close()) }

// endLeftKeys deletes the keys of processes that were killed.
func (m *Proxy) endLeftKeys(ctx context.Context) {
	entries, err := os.ReadDir(m.keyNotes())
	if err != nil {
		return // there never was one
	}
	for _, e := range entries {
		if err := m.endLeftKey(ctx, e.Name()); err != nil && ctx.Err() == nil {
			m.service.Logger.WarnContext(ctx, "the key of a run was not deleted yet", "key", e.Name(), "error", err)
		}
	}
}

func (m *Proxy) endLeftKey(ctx context.Context, name string) error {
	provider, run, _ := strings.Cut(name, "@")
	at := slices.IndexFunc(m.Config.Providers, func(p config.LLMProvider) bool { return p.Name == provider && p.KeyPerRun })
	if at < 0 {
		return nil // not configured any more; the key ends by itself
	}
	file, err := os.OpenFile(filepath.Join(m.keyNotes(), name), os.O_RDWR, 0)
	if err != nil {
		return nil //nolint:nilerr // its owner has deleted it
	}
	note := &keyNote{file, true}
	if !note.lock() {
		return file.Close() // its owner lives
	}
	client, err := LiteLLM(m.service.Settings, &m.Config.Providers[at])
	if err != nil {
		return errors.Join(err, file.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, runKeyPatience)
	defer cancel()
	if err := client.DeleteRunKey(ctx, run); err != nil {
		return errors.Join(err, file.Close())
	}
	return note.forget()
}
