package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

func TestTaskFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	sub := d.Subscribe(ann, 64)
	defer sub.Close()
	rec := d.ask(ann, "main", "t1", "say hello there")
	if rec.State != session.Queued || rec.Key != "agent:main:main" || rec.Account != "ann" || rec.Agent != "main" {
		t.Errorf("accepted: %+v", rec)
	}
	events := collect(t, sub, "t1")
	var kinds []session.EventKind
	for i, e := range events {
		kinds = append(kinds, e.Kind)
		if e.Key != "agent:main:main" || e.Account != "ann" || e.Task != "t1" || e.Seq != int64(i) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if want := []session.EventKind{session.Accepted, session.Started, session.Said, session.Said, session.Used, session.Ended}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %v", kinds)
	}
	if events[3].Delta != "there " || events[3].Text != "hello there " {
		t.Errorf("said: %+v", events[3])
	}
	got := d.over(ann, "t1")
	if got.State != session.Done || got.Text != "hello there" || got.Model != "p/own" || got.Usage.Output != 1 || got.Started.IsZero() || got.Ended.IsZero() {
		t.Errorf("ended: %+v", got)
	}
	e, err := d.Get(t.Context(), ann, "main")
	if err != nil || e.LastModel != "p/own" || e.Total.Input != 10 || e.ID != got.Session {
		t.Errorf("entry %+v, %v", e, err)
	}
	d.ask(ann, "main", "t2", "say more")
	d.over(ann, "t2")
	if messages, err := d.History(t.Context(), ann, "main", 3); err != nil || len(messages) != 3 || messages[2].Text != "more" {
		t.Errorf("history %v, %v", messages, err)
	}
}

// The same again is the same task, also when it is over and when the queue is
// full; another under the same id is refused, and ids of others do not matter.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{PerSession: 1})
	d.ask(ann, "main", "t1", "wait a")
	d.began(1)
	d.ask(ann, "main", "t2", "say two")
	if _, _, err := d.Submit(t.Context(), ann, session.Task{ID: "t3", Key: "main", Message: "say three"}); !errors.Is(err, session.ErrBusy) {
		t.Errorf("over the limit: %v", err)
	}
	again := func(key, message string) (*session.Record, bool, error) {
		return d.Submit(t.Context(), ann, session.Task{ID: "t1", Key: key, Message: message})
	}
	if rec, existing, err := again("agent:main:main", "wait a"); err != nil || !existing || rec.State != session.Running {
		t.Errorf("again: %+v, %v, %v", rec, existing, err)
	}
	for key, message := range map[string]string{"main": "wait b", "other": "wait a"} {
		if _, _, err := again(key, message); !errors.Is(err, session.ErrKeyReused) {
			t.Errorf("%s %s: %v", key, message, err)
		}
	}
	d.ask(bob, "main", "t1", "say something else")
	d.over(bob, "t1")
	d.letGo("a")
	d.over(ann, "t1")
	if rec, existing, err := again("main", "wait a"); err != nil || !existing || rec.State != session.Done {
		t.Errorf("when over: %+v, %v, %v", rec, existing, err)
	}
	d.over(ann, "t2")
	if n := len(d.seen()); n != 3 {
		t.Errorf("%d tasks were carried out", n)
	}
}

// Tasks of a session come one after the other, in order; the default lets 32 wait.
func TestQueueInASession(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	d.ask(ann, "main", "first", "wait a")
	d.began(1)
	for i := range 32 {
		d.ask(ann, "main", fmt.Sprint("t", i), fmt.Sprint("say ", i))
	}
	if _, _, err := d.Submit(t.Context(), ann, session.Task{ID: "more", Key: "main", Message: "say x"}); !errors.Is(err, session.ErrBusy) {
		t.Errorf("number 33: %v", err)
	}
	d.ask(ann, "other", "aside", "say aside") // another session has its own
	d.over(ann, "aside")
	d.letGo("a")
	d.over(ann, "t31")
	var order []string
	for _, job := range d.seen() {
		if job.Key == "agent:main:main" {
			order = append(order, job.ID)
		}
	}
	for i := range 32 {
		if order[i+1] != fmt.Sprint("t", i) {
			t.Fatalf("order %v", order)
		}
	}
	for where, most := range d.most {
		if most != 1 {
			t.Errorf("%q: %d at once", where, most)
		}
	}
}

// Sessions work at once, up to a number; who has least goes first.
func TestRoomIsShared(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{Running: 2, PerAccount: 5, Waiting: 7})
	for i := range 7 { // 2 run, 5 wait
		d.ask(ann, fmt.Sprint("s", i), fmt.Sprint("a", i), fmt.Sprint("wait a", i))
		d.until("it is queued or runs", func() bool { return d.Stats().Running == min(i+1, 2) })
	}
	busy := func(v session.View, id string) {
		t.Helper()
		if _, _, err := d.Submit(t.Context(), v, session.Task{ID: id, Key: id, Message: "say x"}); !errors.Is(err, session.ErrBusy) {
			t.Errorf("%s: %v", id, err)
		}
	}
	busy(ann, "a7")
	d.ask(bob, "s0", "b0", "wait b0")
	d.ask(bob, "s1", "b1", "wait b1")
	busy(bob, "b2")
	if got := d.Stats(); got != (session.Stats{Running: 2, Waiting: 7, Sessions: 9}) {
		t.Errorf("stats %+v", got)
	}
	d.began(2)
	d.letGo("a0")
	d.began(3)
	if job := d.seen()[2]; job.ID != "b0" {
		t.Errorf("%s came before the first of bob", job.ID)
	}
	for i := 1; i < 7; i++ {
		d.letGo(fmt.Sprint("a", i))
	}
	d.letGo("b0")
	d.letGo("b1")
	d.over(ann, "a6")
	d.over(bob, "b1")
	if d.peak != 2 {
		t.Errorf("%d ran at once", d.peak)
	}
	d.until("nothing is left", func() bool { return d.Stats() == session.Stats{} })
}

func TestAbort(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	d.ask(ann, "main", "t1", "wait never")
	d.began(1)
	d.ask(ann, "main", "t2", "say two")
	d.ask(ann, "main", "t3", "say three")
	if ids, err := d.Abort(t.Context(), bob, "main", ""); err != nil || len(ids) != 0 {
		t.Errorf("bob aborted %v, %v", ids, err)
	}
	if ids, err := d.Abort(t.Context(), ann, "main", "t2"); err != nil || !slices.Equal(ids, []string{"t2"}) {
		t.Errorf("%v, %v", ids, err)
	}
	if rec := d.over(ann, "t2"); rec.State != session.Aborted || !rec.Started.IsZero() {
		t.Errorf("t2: %+v", rec)
	}
	if ids, err := d.Abort(t.Context(), ann, "main", ""); err != nil || !slices.Equal(ids, []string{"t1", "t3"}) {
		t.Errorf("%v, %v", ids, err)
	}
	if rec := d.over(ann, "t1"); rec.State != session.Aborted || rec.Problem == "" {
		t.Errorf("t1: %+v", rec)
	}
	if e, err := d.Get(t.Context(), ann, "main"); err != nil || !e.Aborted {
		t.Errorf("entry %+v, %v", e, err)
	}
	d.ask(ann, "main", "t4", "say four")
	d.over(ann, "t4")
	if n := len(d.seen()); n != 2 {
		t.Errorf("%d tasks began", n)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	for message, code := range map[string]string{"fail budget": "budget", "panic": session.CodeInternal, "wait never": session.CodeTimeout} {
		task := session.Task{ID: message, Key: strings.Fields(message)[0], Message: message}
		if code == session.CodeTimeout {
			task.Timeout = 50 * time.Millisecond
		}
		if _, _, err := d.Submit(t.Context(), ann, task); err != nil {
			t.Fatal(err)
		}
		if rec := d.over(ann, message); rec.State != session.Failed || rec.Code != code || rec.Problem == "" {
			t.Errorf("%s: %+v", message, rec)
		}
	}
	if rec := d.over(ann, "fail budget"); rec.Text != "half" {
		t.Errorf("what it had said: %q", rec.Text)
	}
}

func TestBadTasks(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{Message: 100})
	ok := session.Task{ID: "t", Key: "main", Message: "say x"}
	for name, spoil := range map[string]func(*session.Task){
		"no id":           func(t *session.Task) { t.ID = "" },
		"long id":         func(t *session.Task) { t.ID = strings.Repeat("x", 257) },
		"id of controls":  func(t *session.Task) { t.ID = "a\nb" },
		"no message":      func(t *session.Task) { t.Message = " \n" },
		"long message":    func(t *session.Task) { t.Message = strings.Repeat("x", 101) },
		"long system":     func(t *session.Task) { t.System = strings.Repeat("x", 100) },
		"zero byte":       func(t *session.Task) { t.Message = "a\x00" },
		"no text":         func(t *session.Task) { t.Message = "a\xff" },
		"unknown agent":   func(t *session.Task) { t.Key = "agent:nobody:main" },
		"bad key":         func(t *session.Task) { t.Key = "agent:main" },
		"long timeout":    func(t *session.Task) { t.Timeout = 25 * time.Hour },
		"past":            func(t *session.Task) { t.Timeout = -1 },
		"header smuggled": func(t *session.Task) { t.Headers = map[string]string{"x-a": "b\r\nx-litellm-end-user-id: eve"} },
		"credential":      func(t *session.Task) { t.Headers = map[string]string{"X-Api-Key": "k"} },
		"not ours to set": func(t *session.Task) { t.Headers = map[string]string{"Authorization": "k"} },
		"odd account":     func(t *session.Task) { t.Account = "a\nb" },
	} {
		task := ok
		spoil(&task)
		if _, _, err := d.Submit(t.Context(), everybody, task); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := d.List(t.Context(), everybody, session.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("sessions were made: %v, %v", list, err)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	text := func(s string) *string { return &s }
	headers := map[string]string{"X-Cogni-Run-Id": "r1", "x-tag": "a"}
	e, err := d.Patch(t.Context(), ann, "main", session.Patch{Label: text("mine"), Model: text("p/big"), Headers: &headers, Levels: map[string]*string{"thinkingLevel": text("high"), "verboseLevel": text("on")}})
	if err != nil || e.Model != "p/big" || e.Headers["x-cogni-run-id"] != "r1" || e.Levels["thinkingLevel"] != "high" {
		t.Fatalf("%+v, %v", e, err)
	}
	rec, _, err := d.Submit(t.Context(), ann, session.Task{ID: "t1", Key: "main", Message: "say x", Headers: map[string]string{"x-cogni-run-id": "r2"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.over(ann, rec.ID); got.Model != "p/big" {
		t.Errorf("%+v", got)
	}
	job := d.seen()[0]
	if job.Headers["x-cogni-run-id"] != "r2" || job.Headers["x-tag"] != "a" || job.Levels["verboseLevel"] != "on" {
		t.Errorf("job %+v", job)
	}
	e, err = d.Patch(t.Context(), ann, "main", session.Patch{Model: text(""), Levels: map[string]*string{"thinkingLevel": nil}})
	if err != nil || e.Model != "" || e.Label != "mine" || len(e.Levels) != 1 || e.Headers["x-cogni-run-id"] != "r2" {
		t.Errorf("%+v, %v", e, err)
	}
	for name, p := range map[string]session.Patch{
		"unknown model": {Model: text("nope")}, "long label": {Label: text(strings.Repeat("x", 65))}, "line break": {Headers: &map[string]string{"x-a": "a\nb"}},
		"level": {Levels: map[string]*string{"a\n": nil}},
	} {
		if _, err := d.Patch(t.Context(), ann, "main", p); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Patch(t.Context(), ann, "two", session.Patch{Label: text("mine")}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a label twice: %v", err)
	}
	if _, err := d.Patch(t.Context(), bob, "two", session.Patch{Label: text("mine")}); err != nil {
		t.Errorf("another account's label: %v", err)
	}
}

func TestListAndPages(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{Sessions: 7})
	for i := range 7 {
		key := fmt.Sprint("s", i)
		if i%2 == 1 {
			key = "agent:work:" + key
		}
		if _, err := d.Patch(t.Context(), ann, key, session.Patch{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Patch(t.Context(), ann, "s8", session.Patch{}); !errors.Is(err, session.ErrBusy) {
		t.Errorf("more sessions than an account may have: %v", err)
	}
	if _, err := d.Patch(t.Context(), bob, "s_", session.Patch{}); err != nil {
		t.Fatal(err)
	}
	count := func(v session.View, f session.Filter) int {
		list, err := d.List(t.Context(), v, f)
		if err != nil {
			t.Error(err)
		}
		return len(list)
	}
	for name, got := range map[string][2]int{
		"ann": {count(ann, session.Filter{}), 7}, "bob": {count(bob, session.Filter{}), 1}, "all": {count(everybody, session.Filter{}), 8},
		"one account": {count(everybody, session.Filter{Account: "bob"}), 1}, "another's": {count(bob, session.Filter{Account: "ann"}), 0},
		"agent": {count(ann, session.Filter{Agent: "work"}), 3}, "search": {count(everybody, session.Filter{Search: "s_"}), 1},
		"future": {count(everybody, session.Filter{Since: time.Now().Add(time.Hour)}), 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
	seen := map[string]bool{}
	f := session.Filter{Most: 3}
	for {
		page, err := d.List(t.Context(), everybody, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			seen[e.Account+e.Key] = true
		}
		f.After = page[len(page)-1].Cursor()
	}
	if len(seen) != 8 {
		t.Errorf("pages have %d sessions", len(seen))
	}
	if _, err := d.List(t.Context(), everybody, session.Filter{After: "?"}); !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
}

func TestResetDeleteCompact(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	d.ask(ann, "main", "t1", "say one")
	first := d.over(ann, "t1").Session
	d.ask(ann, "main", "t2", "wait never")
	d.began(2)
	d.ask(ann, "main", "t3", "say three")
	if _, _, err := d.Compact(t.Context(), ann, "main"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("compact at work: %v", err)
	}
	e, err := d.Reset(t.Context(), ann, "main")
	if err != nil || e.ID == first || e.Total != (chat.Usage{}) {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, id := range []string{"t2", "t3"} {
		if rec := d.over(ann, id); rec.State != session.Aborted {
			t.Errorf("%s: %+v", id, rec)
		}
	}
	d.ask(ann, "main", "t4", "say four")
	if rec := d.over(ann, "t4"); rec.Session != e.ID {
		t.Errorf("%+v", rec)
	}
	d.until("it rests", func() bool { return d.Stats().Running == 0 })
	if before, after, err := d.Compact(t.Context(), ann, "main"); err != nil || before != 2 || after != 1 {
		t.Errorf("%d, %d, %v", before, after, err)
	}
	if _, err := d.Delete(t.Context(), ann, "main"); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"get":     func() error { _, err := d.Get(t.Context(), ann, "main"); return err },
		"delete":  func() error { _, err := d.Delete(t.Context(), ann, "main"); return err },
		"reset":   func() error { _, err := d.Reset(t.Context(), ann, "main"); return err },
		"history": func() error { _, err := d.History(t.Context(), ann, "main", 1); return err },
		"compact": func() error { _, _, err := d.Compact(t.Context(), ann, "main"); return err },
	} {
		if err := f(); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Kept(e) {
		t.Error("the transcript is still there")
	}
}

// A reader that is too slow loses its subscription; no other is affected.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	slow, quick := d.Subscribe(ann, 2), d.Subscribe(ann, 1000)
	defer quick.Close()
	d.ask(ann, "main", "t1", "say "+strings.Repeat("word ", 100))
	if n := len(collect(t, quick, "t1")); n != 104 {
		t.Errorf("%d events", n)
	}
	for range slow.Events() { // until it ends
	}
	if !slow.Lost() || quick.Lost() {
		t.Errorf("lost: %v, %v", slow.Lost(), quick.Lost())
	}
	slow.Close()
	if n := d.Stats().Subscribers; n != 1 {
		t.Errorf("%d subscribers", n)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	d.ask(ann, "main", "t1", "wait a")
	d.began(1)
	d.ask(ann, "main", "t2", "say two")
	sub := d.Subscribe(ann, 4096)
	done := make(chan error, 1)
	go func() { done <- d.Drain(t.Context()) }()
	tries := 0
	d.until("nothing new is taken", func() bool {
		tries++
		_, _, err := d.Submit(t.Context(), ann, session.Task{ID: fmt.Sprint("more", tries), Key: fmt.Sprint("s", tries), Message: "say x"})
		return errors.Is(err, session.ErrDraining)
	})
	d.letGo("a")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if rec := d.over(ann, "t1"); rec.State != session.Done {
		t.Errorf("t1: %+v", rec)
	}
	waits := make(chan error, 1)
	go func() { _, err := d.Wait(t.Context(), ann, "t2"); waits <- err }()
	d.Close()
	if err := <-waits; !errors.Is(err, session.ErrDraining) {
		t.Errorf("t2: %v", err)
	}
	for range sub.Events() { // until it ends
	}
	if sub.Lost() {
		t.Error("the end of the service is no loss")
	}
}

// A drain that takes too long interrupts.
func TestDrainInterrupts(t *testing.T) {
	t.Parallel()
	d := open(t, session.Limits{})
	d.ask(ann, "main", "t1", "wait never")
	d.began(1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := d.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if rec := d.over(ann, "t1"); rec.State != session.Failed || rec.Code != session.CodeInterrupted {
		t.Errorf("%+v", rec)
	}
}
