package usage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
)

// kind is the kind of a journal record.
type kind byte

const (
	kindReserve kind = iota + 1 // Tokens and MicroUSD are held
	kindSettle                  // Tokens and MicroUSD are spent; the reservation ends
	kindRelease                 // the reservation ends, nothing is spent
	kindCorrect                 // the call cost MicroUSD, not Was
)

// The flags of a record.
const (
	flagUnpriced byte = 1 << iota
	flagEstimated
	flagCrashed
)

// record is one line of the journal. It holds all that is known, so that it can
// be understood without the records before it.
type record struct {
	Kind              kind
	Flags             byte
	ID, Owner         string
	Subject           Subject
	Day               string
	Dialect           string
	ModelAsked, Model string
	AtMs, Status      int64
	MicroUSD, Was     int64
	Tokens            Tokens
}

// MaxID is how long a call's id may be, maxKey a subject's part, a model or a
// dialect. They bound a record.
const (
	MaxID     = 128
	maxKey    = 512
	maxRecord = 8 << 10
	frameHead = 8 // length and checksum
)

var (
	errTorn    = errors.New("incomplete")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func (r *record) texts() [10]*string {
	return [...]*string{&r.ID, &r.Owner, &r.Subject.Run, &r.Subject.Session, &r.Subject.Agent, &r.Subject.Account,
		&r.Day, &r.Dialect, &r.ModelAsked, &r.Model}
}

func (r *record) numbers() [9]*int64 {
	t := &r.Tokens
	return [...]*int64{&r.AtMs, &r.Status, &r.MicroUSD, &r.Was, &t.Input, &t.CachedInput, &t.CacheWrite, &t.Output, &t.Reasoning}
}

// appendTo appends the framed record to b.
func (r *record) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = append(b, byte(r.Kind), r.Flags)
	for _, text := range r.texts() {
		b = binary.AppendUvarint(b, uint64(len(*text)))
		b = append(b, *text...)
	}
	for _, n := range r.numbers() {
		b = binary.AppendVarint(b, *n)
	}
	body := b[start+frameHead:]
	binary.LittleEndian.PutUint32(b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	return b
}

// next reads the first record of b and how long it is. errTorn means that b
// does not begin with a whole one.
func next(b []byte, r *record) (int, error) {
	size := frame(b)
	if size == 0 || !r.decode(b[frameHead:size]) {
		return 0, errTorn
	}
	return size, nil
}

func (r *record) decode(b []byte) bool {
	if len(b) < 2 {
		return false
	}
	r.Kind, r.Flags, b = kind(b[0]), b[1], b[2:]
	for _, text := range r.texts() {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return false
		}
		*text, b = string(b[used:used+int(n)]), b[used+int(n):]
	}
	for _, number := range r.numbers() {
		n, used := binary.Varint(b)
		if used <= 0 {
			return false
		}
		*number, b = n, b[used:]
	}
	return len(b) == 0
}

// charge is what a settled call adds to the totals.
func (r *record) charge() Charge {
	c := Charge{MicroUSD: r.MicroUSD, Tokens: r.Tokens, Calls: 1}
	if r.Flags&flagUnpriced != 0 {
		c.Unpriced = 1
	}
	if r.Flags&flagEstimated != 0 {
		c.Estimated = 1
	}
	return c
}

// correction is what a corrected call adds to the totals.
func (r *record) correction() Charge {
	c := Charge{MicroUSD: r.MicroUSD - r.Was}
	if r.Flags&flagUnpriced != 0 { // its money is known now
		c.Unpriced = -1
	}
	return c
}

// scopeKey is one total.
type scopeKey struct {
	scope Scope
	key   string
}

// keys are the totals that a call counts in. A part of the subject that is not
// named is a key too: a budget is never skipped because a name is missing.
func (r *record) keys() [5]scopeKey {
	s := r.Subject
	return [...]scopeKey{{ScopeRun, s.Run}, {ScopeSession, s.Session}, {ScopeAgent, s.Agent}, {ScopeAccount, s.Account}, {ScopeDay, r.Day}}
}

// bounded limits a number of tokens so that sums do not overflow.
func bounded(n int64) int64 { return min(max(n, 0), math.MaxInt32) }
