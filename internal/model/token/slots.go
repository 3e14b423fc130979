package token

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
)

// Slots are the providers in the configuration of a gateway that cannot name
// the run of a call. Each has a token that does not change, and its calls are
// those of the run that has leased it; while none has, they are refused. So the
// calls of a gateway that serves many runs are billed to the right one.
//
// Slots are safe for concurrent use, by several processes too.
type Slots struct {
	db  *store.DB
	now func() time.Time
}

// NewSlots returns the slots of a database; now may be nil.
func NewSlots(db *store.DB, now func() time.Time) *Slots {
	if now == nil {
		now = time.Now
	}
	return &Slots{db, now}
}

const (
	// MaxSlots is how many there can be.
	MaxSlots = 256
	// Cooldown is how long a slot that was released is not leased again: calls
	// that its last run left under way have ended by then.
	Cooldown = 2 * time.Second
	// LongCooldown is the cooldown of a slot whose run may not have ended.
	LongCooldown = 15 * time.Minute
	// OpenProvider is the name of the provider whose callers name their run themselves.
	OpenProvider = "cogni"
)

// ErrNoSlot means that every slot is leased or cooling down.
var ErrNoSlot = errors.New("every slot of the gateway is in use")

// SlotName is the name of a slot, from 1 on.
func SlotName(n int) string { return fmt.Sprintf("%s-%d", OpenProvider, n) }

// Provide replaces all slots by new ones: tokens of earlier slots end. With open
// there is also one whose callers name their run themselves.
func (s *Slots) Provide(ctx context.Context, count int, open bool) (map[string]secret.Value, error) {
	if count < 1 || count > MaxSlots {
		return nil, fmt.Errorf("%d slots: there can be 1 to %d", count, MaxSlots)
	}
	texts := map[string]secret.Value{}
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM model_slots"); err != nil {
			return err
		}
		for n := 1; n <= count; n++ {
			if err := s.insert(ctx, tx, SlotName(n), false, texts); err != nil {
				return err
			}
		}
		if open {
			return s.insert(ctx, tx, OpenProvider, true, texts)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return texts, nil
}

func (s *Slots) insert(ctx context.Context, tx *sql.Tx, name string, open bool, texts map[string]secret.Value) error {
	id, proof, text := mint()
	sum := hash(id, proof)
	_, err := tx.ExecContext(ctx, "INSERT INTO model_slots (name, token, hash, open, made_ms) VALUES (?, ?, ?, ?, ?)", name, id, sum[:], open, s.now().UnixMilli())
	texts[name] = secret.New(text)
	return err
}

// Lease gives a free slot to a run until the terms end. A run that has one gets
// the same again.
func (s *Slots) Lease(ctx context.Context, terms *grant.Terms) (name string, err error) {
	if terms.Run == "" || len(terms.Models) == 0 || !s.now().Before(terms.Until) {
		return "", errors.New("a lease needs a run, models and an end")
	}
	text, err := json.Marshal(terms)
	if err != nil {
		return "", err
	}
	err = s.db.Tx(ctx, func(tx *sql.Tx) error {
		now := s.now().UnixMilli()
		err := tx.QueryRowContext(ctx, `SELECT name FROM model_slots WHERE open = 0 AND (run = ?1 OR until_ms <= ?2 AND rest_ms <= ?2)
			ORDER BY run <> ?1, rest_ms, name LIMIT 1`, terms.Run, now).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return s.noSlot(ctx, tx)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE model_slots SET run = ?, terms = ?, until_ms = ?, rest_ms = ? WHERE name = ?",
			terms.Run, string(text), terms.Until.UnixMilli(), terms.Until.Add(LongCooldown).UnixMilli(), name)
		return err
	})
	return name, err
}

// noSlot returns why there is no slot: none was made, or all are in use.
func (s *Slots) noSlot(ctx context.Context, tx *sql.Tx) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM model_slots WHERE open = 0").Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return errors.New("the gateway has no slots")
	}
	return fmt.Errorf("%w (%d)", ErrNoSlot, n)
}

// Release ends a run's lease at once. A run that may not have ended may still be
// calling: its slot gets the long cooldown.
func (s *Slots) Release(ctx context.Context, run string, ended bool) error {
	rest := LongCooldown
	if ended {
		rest = Cooldown
	}
	_, err := s.db.ExecContext(ctx, "UPDATE model_slots SET run = '', terms = '', until_ms = 0, rest_ms = ? WHERE run = ? AND run <> ''", s.now().Add(rest).UnixMilli(), run)
	return s.db.Explain(err)
}

// EndCooldown ends the cooldown of all slots, when their gateway was restarted.
func (s *Slots) EndCooldown(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "UPDATE model_slots SET rest_ms = 0 WHERE run = ''")
	return s.db.Explain(err)
}

// HasOpen reports whether there is a provider whose callers name their run.
func (s *Slots) HasOpen(ctx context.Context) (open bool, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*) > 0 FROM model_slots WHERE open = 1").Scan(&open)
	return open, s.db.Explain(err)
}

// Verify returns the terms of the run that has leased the slot whose token a
// caller sent. It reads the database each time, so a released slot is refused at
// once.
func (s *Slots) Verify(ctx context.Context, text string) (*grant.Terms, error) {
	id, proof, ok := split(text)
	if !ok {
		return nil, ErrInvalid
	}
	var kept []byte
	var open bool
	var saved string
	var until int64
	err := s.db.QueryRowContext(ctx, "SELECT hash, open, terms, until_ms FROM model_slots WHERE token = ?", id).Scan(&kept, &open, &saved, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrInvalid
	}
	if err != nil {
		return nil, s.db.Explain(err)
	}
	sum := hash(id, proof)
	switch {
	case len(kept) != sha256.Size || subtle.ConstantTimeCompare(sum[:], kept) != 1:
		return nil, ErrInvalid
	case open:
		return &grant.Terms{Until: s.now().Add(time.Hour)}, nil
	case saved == "" || s.now().UnixMilli() >= until:
		return nil, ErrRevoked
	}
	terms := &grant.Terms{}
	return terms, json.Unmarshal([]byte(saved), terms)
}
