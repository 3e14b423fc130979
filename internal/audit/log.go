package audit

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Options are the numbers of a Log; zero is the default.
type Options struct {
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is the clock

	QueueBytes  int           // of records that wait to be written
	SyncEvery   time.Duration // how long a record may be in memory only
	SegmentSize int64         // a larger segment is closed and another begun
	SegmentAge  time.Duration
	KeepSize    int64 // of all segments together; the oldest go
	KeepAge     time.Duration
	KeepCount   int     // of segments: short-lived writers make many small ones
	FreeRate    float64 // records a second of requests that cost nothing, per subject
	FreeBurst   int
}

// The defaults of Options.
const (
	DefaultQueueBytes  = 4 << 20
	DefaultSyncEvery   = 250 * time.Millisecond
	DefaultSegmentSize = 64 << 20
	DefaultSegmentAge  = 24 * time.Hour
	DefaultKeepSize    = 2 << 30
	DefaultKeepAge     = 180 * 24 * time.Hour
	DefaultKeepCount   = 2000
	DefaultFreeRate    = 5
	DefaultFreeBurst   = 50

	checkpointLines = 256
	retryEvery      = time.Second
	// gatherFor is how long records gather before they are written together, and
	// how long the writer stays awake when none come: waking it costs more than
	// writing a record.
	gatherFor = 20 * time.Millisecond
)

// The errors of Append.
var (
	ErrClosed  = errors.New("the audit log is closed")
	ErrFailing = errors.New("the audit log cannot be written, so nothing more may happen")
)

// Log is the audit log of one process. It is safe for concurrent use.
type Log struct {
	dir     string
	options Options
	key     ed25519.PrivateKey
	limiter *rateLimiter

	mu      sync.Mutex
	notFull sync.Cond // queue has room, or never will
	queue   []byte    // lines of JSON
	spare   []byte
	awake   bool // the writer looks at the queue by itself
	failing error
	closed  bool
	// scrubbers take known secrets out of a text. Each is there until it is removed.
	scrubbers []*func(string) string

	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	segment *segment // the writer's own
}

// Open opens the log in dir. Its segment is made with the first record.
func Open(dir string, o Options) (*Log, error) {
	o.fill()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err := removeStale(dir, o.Now()); err != nil {
		return nil, err
	}
	key, err := loadKey(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, options: o, key: key, limiter: newRateLimiter(o.FreeRate, o.FreeBurst),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	l.notFull.L = &l.mu
	go l.work()
	return l, nil
}

func (o *Options) fill() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.QueueBytes = cmp.Or(o.QueueBytes, DefaultQueueBytes)
	o.SyncEvery = cmp.Or(o.SyncEvery, DefaultSyncEvery)
	o.SegmentSize = cmp.Or(o.SegmentSize, DefaultSegmentSize)
	o.SegmentAge = cmp.Or(o.SegmentAge, DefaultSegmentAge)
	o.KeepSize = cmp.Or(o.KeepSize, DefaultKeepSize)
	o.KeepAge = cmp.Or(o.KeepAge, DefaultKeepAge)
	o.KeepCount = cmp.Or(o.KeepCount, DefaultKeepCount)
	o.FreeRate = cmp.Or(o.FreeRate, DefaultFreeRate)
	o.FreeBurst = cmp.Or(o.FreeBurst, DefaultFreeBurst)
}

// Append writes an event. It waits while the queue is full, and fails when the log
// cannot be written: what must be audited is then not done. Events that cost
// nothing are counted instead of recorded beyond FreeRate, for each subject and
// kind, so that a hostile caller cannot fill the log.
func (l *Log) Append(e Event) error {
	kind, _, subject := e.header()
	if e.limited() && !l.limiter.allow(kind, subject, l.options.Now()) {
		return l.Healthy()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) >= l.options.QueueBytes && l.failing == nil && !l.closed {
		l.notFull.Wait()
	}
	if err := l.state(); err != nil {
		return err
	}
	l.queue = append(appendEvent(l.queue, e, l.scrub), '\n')
	if !l.awake || len(l.queue) > l.options.QueueBytes/2 {
		l.awake = true
		l.wakeWriter()
	}
	return nil
}

// AddScrubber has a function take known secrets out of the texts of all events from
// now on, until remove is called.
func (l *Log) AddScrubber(scrub func(string) string) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scrubbers = append(l.scrubbers, &scrub)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.scrubbers = slices.DeleteFunc(l.scrubbers, func(s *func(string) string) bool { return s == &scrub })
	}
}

// scrub takes known secrets out of a text.
func (l *Log) scrub(text string) string {
	for _, scrub := range l.scrubbers {
		text = (*scrub)(text)
	}
	return text
}

// wakeWriter makes the writer look at the queue now.
func (l *Log) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Healthy reports whether records can be written.
func (l *Log) Healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state()
}

func (l *Log) state() error {
	switch {
	case l.closed:
		return ErrClosed
	case l.failing != nil:
		return fmt.Errorf("%w: %w", ErrFailing, l.failing)
	}
	return nil
}

// Close writes what waits and closes the segment.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.notFull.Broadcast()
	l.mu.Unlock()
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing
}

// work is the one writer. Once woken it looks at the queue every gatherFor, until
// it is empty.
func (l *Log) work() {
	defer close(l.done)
	tick := time.NewTicker(l.options.SyncEvery)
	defer tick.Stop()
	look := time.NewTimer(gatherFor)
	defer look.Stop()
	for {
		select {
		case <-l.wake:
			look.Reset(l.gatherDelay())
		case <-look.C:
			if l.hasMore() || l.isFailing() {
				l.setFailing(l.drain())
				look.Reset(gatherFor)
			}
		case <-tick.C:
			l.setFailing(l.maintain())
		case <-l.stop:
			l.setFailing(l.finish())
			return
		}
		if l.isFailing() {
			l.pause()
		}
	}
}

// gatherDelay is how long the writer waits for more records, so that many share
// one write: not at all if many wait already.
func (l *Log) gatherDelay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > l.options.QueueBytes/2 {
		return 0
	}
	return gatherFor
}

// hasMore reports whether records wait. If none do, the next one has to wake the
// writer.
func (l *Log) hasMore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awake = len(l.queue) > 0
	return l.awake
}

// pause waits before the next try of a log that cannot be written.
func (l *Log) pause() {
	select {
	case <-time.After(retryEvery):
	case <-l.stop:
	}
	l.wakeWriter()
}

func (l *Log) isFailing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing != nil
}

// setFailing keeps the result of the last write.
func (l *Log) setFailing(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.failing == nil {
		l.options.Logger.Error("the audit log cannot be written", "error", err)
	}
	l.failing = err
	if err != nil {
		l.notFull.Broadcast()
	}
}

// drain writes what waits. What could not be written stays in the segment's
// buffer and is tried again.
func (l *Log) drain() error {
	if err := l.ensureSegment(); err != nil {
		return err
	}
	if err := l.segment.write(); err != nil { // of an earlier try
		return err
	}
	l.mu.Lock()
	batch := l.queue
	l.queue, l.spare = l.spare[:0], nil
	l.notFull.Broadcast()
	l.mu.Unlock()
	l.addBatch(batch, l.options.Now())
	l.mu.Lock()
	l.spare = batch[:0]
	l.mu.Unlock()
	if l.hasPending() {
		return l.takePending()
	}
	return l.segment.write()
}

// addBatch adds records, one a line, to the segment.
func (l *Log) addBatch(batch []byte, now time.Time) {
	for len(batch) > 0 {
		var body []byte
		body, batch, _ = bytes.Cut(batch, []byte{'\n'})
		l.segment.addRecord(body)
		if l.segment.lines-l.segment.signed >= checkpointLines {
			l.segment.checkpoint(now, kindCheckpoint)
		}
	}
}

// ensureSegment opens a segment, a new one when the current is too large or old.
func (l *Log) ensureSegment() (err error) {
	now := l.options.Now()
	s := l.segment
	if s != nil && s.size < l.options.SegmentSize && now.Sub(s.opened) < l.options.SegmentAge {
		return nil
	}
	if s != nil {
		if err := s.close(now); err != nil {
			return err
		}
		l.segment = nil
	}
	if l.segment, err = createSegment(l.dir, l.key, now); err != nil {
		return err
	}
	return l.retain(now)
}

// maintain is called periodically: it records dropped counts, signs a checkpoint
// and syncs.
func (l *Log) maintain() error {
	now := l.options.Now()
	if dropped, since := l.limiter.takeDropped(); dropped > 0 {
		if err := l.ensureSegment(); err != nil {
			return err
		}
		l.segment.addControl(now, &controlLine{Kind: kindDropped, Dropped: dropped, Since: stamp(since)})
	}
	s := l.segment
	if s == nil || s.signed == s.lines {
		return nil
	}
	s.checkpoint(now, kindCheckpoint)
	return errors.Join(s.write(), s.publish())
}

func (l *Log) finish() error {
	l.mu.Lock()
	waiting := len(l.queue)
	l.mu.Unlock()
	var err error
	if waiting > 0 || l.hasPending() {
		err = l.drain()
	}
	err = errors.Join(err, l.maintain())
	if l.segment == nil {
		return err
	}
	return errors.Join(err, l.segment.close(l.options.Now()))
}
