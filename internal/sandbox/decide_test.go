package sandbox

import (
	"errors"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	spec := &Spec{ConfigHash: "new", MountsHash: "m"}
	hot, cold := now.Add(-HotWindow+time.Millisecond), now.Add(-HotWindow)
	same := observation{exists: true, state: StateRunning, configHash: "new", mountsHash: "m", lastUsed: cold}
	other := observation{exists: true, state: StateRunning, configHash: "old", mountsHash: "m", lastUsed: cold}
	with := func(o observation, change func(*observation)) observation { change(&o); return o }

	for name, c := range map[string]struct {
		seen observation
		want action
	}{
		"nothing there":                  {observation{}, actCreate},
		"running, same hash":             {same, actReuse},
		"stopped, same hash":             {with(same, func(o *observation) { o.state = StateStopped }), actStart},
		"created but never started":      {with(same, func(o *observation) { o.state = StateCreated }), actStart},
		"paused, same hash":              {with(same, func(o *observation) { o.state = StatePaused }), actResume},
		"dead":                           {with(same, func(o *observation) { o.state = StateDead }), actRecreate},
		"creation interrupted":           {with(same, func(o *observation) { o.unfinished = true }), actRecreate},
		"mismatch, cold":                 {other, actRecreate},
		"mismatch, cold, in use":         {with(other, func(o *observation) { o.inUse = true }), actKeepHot},
		"mismatch, hot":                  {with(other, func(o *observation) { o.lastUsed = hot }), actKeepHot},
		"mismatch, last use unknown":     {with(other, func(o *observation) { o.lastUsed = time.Time{} }), actKeepHot},
		"mismatch, hot, paused":          {with(other, func(o *observation) { o.lastUsed, o.state = hot, StatePaused }), actResume},
		"mismatch, recent but stopped":   {with(other, func(o *observation) { o.lastUsed, o.state = hot, StateStopped }), actRecreate},
		"mismatch, hot, mounts changed":  {with(other, func(o *observation) { o.lastUsed, o.mountsHash = hot, "x" }), actRefuse},
		"mismatch, cold, mounts changed": {with(other, func(o *observation) { o.mountsHash = "x" }), actRecreate},
		"mismatch, in use but stopped":   {with(other, func(o *observation) { o.inUse, o.state = true, StateStopped }), actStart},
		"interrupted, yet in use":        {with(same, func(o *observation) { o.unfinished, o.inUse = true, true }), actReuse},
		"limits lost":                    {with(same, func(o *observation) { o.unlimited = errors.New("gone") }), actRestart},
		"limits lost, hot":               {with(same, func(o *observation) { o.unlimited, o.lastUsed = errors.New("gone"), hot }), actRestart},
		"limits lost, in use":            {with(same, func(o *observation) { o.unlimited, o.inUse = errors.New("gone"), true }), actRefuse},
		"limits lost, mismatch, hot":     {with(other, func(o *observation) { o.unlimited, o.lastUsed = errors.New("gone"), hot }), actRecreate},
		"mounts exchanged":               {with(same, func(o *observation) { o.detached = true }), actRecreate},
		"mounts exchanged, hot":          {with(same, func(o *observation) { o.detached, o.lastUsed = true, hot }), actRecreate},
		"mounts exchanged, in use":       {with(same, func(o *observation) { o.detached, o.inUse = true, true }), actRefuse},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(c.seen, spec, now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A caller who asks for settings gets them or an error, never other ones.
func TestDecideExactly(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	spec := &Spec{ConfigHash: "new", MountsHash: "m", Exact: true}
	for _, state := range []State{StateRunning, StatePaused, StateStopped, StateCreated} {
		for _, inUse := range []bool{false, true} {
			for _, hash := range []string{"new", "old"} {
				seen := observation{exists: true, state: state, configHash: hash, mountsHash: "m", lastUsed: now, inUse: inUse}
				got := decide(seen, spec, now)
				if keeps := got != actRefuse && got != actRecreate; keeps != (hash == "new") {
					t.Errorf("%s, in use %v, %s settings: %s", state, inUse, hash, got)
				}
			}
		}
	}
}

// A sandbox whose files are all mounted is made anew as soon as it is not in use.
func TestDecideToReplaceIdle(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	spec := &Spec{ConfigHash: "new", MountsHash: "m", ReplaceIdle: true}
	seen := observation{exists: true, state: StateRunning, configHash: "old", mountsHash: "x", lastUsed: now}
	if got := decide(seen, spec, now); got != actRecreate {
		t.Errorf("idle: %s", got)
	}
	if seen.inUse = true; decide(seen, spec, now) != actRefuse {
		t.Errorf("in use: %s", decide(seen, spec, now))
	}
	if seen.configHash = "new"; decide(seen, spec, now) != actReuse {
		t.Errorf("unchanged: %s", decide(seen, spec, now))
	}
}

// What to do about several gaps is said once, with their names.
func TestRemedies(t *testing.T) {
	both := []Gap{{Field: "docker.memory", Reason: "no group", Remedy: "run as root"}, {Field: "docker.dns", Reason: "no network", Remedy: "remove it"},
		{Field: "docker.cpus", Reason: "no group", Remedy: "run as root"}}
	if got, want := remediesOf(both), "docker.memory, docker.cpus: run as root; docker.dns: remove it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := remediesOf(both[:1]); got != "run as root" {
		t.Errorf("of one: %q", got)
	}
}
