package session

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// Filter selects sessions; empty fields select all.
type Filter struct {
	Account string // within the view
	Agent   string
	ID      string    // of the transcript
	Label   string    // exactly
	Search  string    // in key, label or id
	Since   time.Time // changed since
	Most    int       // of a page; 0 is MaxList
	After   string    // Cursor of the last one of the page before
}

// MaxList bounds a page of List and Tasks.
const MaxList = 1000

// cursor is a position in the list.
type cursor struct {
	Updated int64  `json:"u"`
	Account string `json:"a"`
	Key     string `json:"k"`
}

// Cursor returns the position after this session, for Filter.After.
func (e *Entry) Cursor() string {
	text, err := json.Marshal(cursor{e.Updated.UnixMilli(), e.Account, e.Key})
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// Get returns a session.
func (s *Service) Get(ctx context.Context, v View, key string) (*Entry, error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	return s.rows.entry(ctx, s.DB, p)
}

// List returns sessions, those that changed last first.
func (s *Service) List(ctx context.Context, v View, f Filter) ([]Entry, error) {
	where, args, err := f.where(v)
	if err != nil {
		return nil, err
	}
	most := f.Most
	if most <= 0 || most > MaxList {
		most = MaxList
	}
	found, err := s.DB.QueryContext(ctx, "SELECT entry FROM sessions WHERE "+where+" ORDER BY updated_at_ms DESC, account DESC, key DESC LIMIT ?", append(args, most)...)
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	defer found.Close()
	var list []Entry
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, s.DB.Explain(err)
		}
		e, err := readEntry(text)
		if err != nil {
			return nil, err
		}
		list = append(list, *e)
	}
	return list, s.DB.Explain(found.Err())
}

// where returns the filter as an SQL condition, which never includes accounts
// outside the view.
func (f *Filter) where(v View) (string, []any, error) {
	conditions, args := []string{"1"}, []any{}
	add := func(wanted bool, condition string, values ...any) {
		if wanted {
			conditions, args = append(conditions, condition), append(args, values...)
		}
	}
	add(!v.All, "account = ?", v.Account)
	add(f.Account != "", "account = ?", f.Account)
	add(f.Agent != "", "agent = ?", f.Agent)
	add(f.ID != "", "id = ?", f.ID)
	add(f.Label != "", "label = ?", f.Label)
	pattern := like(f.Search)
	add(f.Search != "", `(key LIKE ? ESCAPE '\' OR label LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\')`, pattern, pattern, pattern)
	add(!f.Since.IsZero(), "updated_at_ms >= ?", f.Since.UnixMilli())
	if f.After != "" {
		var c cursor
		text, err := base64.RawURLEncoding.DecodeString(f.After)
		if err != nil || json.Unmarshal(text, &c) != nil {
			return "", nil, fmt.Errorf("%w: the cursor is not one of ours", ErrInvalid)
		}
		add(true, "(updated_at_ms, account, key) < (?, ?, ?)", c.Updated, c.Account, c.Key)
	}
	return strings.Join(conditions, " AND "), args, nil
}

// Accounts returns the accounts that have sessions, in order.
func (s *Service) Accounts(ctx context.Context) (accounts []string, err error) {
	found, err := s.DB.QueryContext(ctx, "SELECT DISTINCT account FROM sessions ORDER BY account")
	if err != nil {
		return nil, s.DB.Explain(err)
	}
	defer found.Close() //nolint:errcheck // Err tells
	for found.Next() {
		var account string
		if err := found.Scan(&account); err != nil {
			return nil, s.DB.Explain(err)
		}
		accounts = append(accounts, account)
	}
	return accounts, s.DB.Explain(found.Err())
}

// Tasks returns the latest tasks of a session, the latest first.
func (s *Service) Tasks(ctx context.Context, v View, key string, most int) ([]*Record, error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	if most <= 0 || most > MaxList {
		most = MaxList
	}
	return s.rows.records(ctx, "account = ? AND key = ? ORDER BY number DESC LIMIT ?", p.account, p.key, most)
}

// Patch changes the settings of a session, and creates it if it does not exist.
// They apply from the next task on.
func (s *Service) Patch(ctx context.Context, v View, key string, patch Patch) (e *Entry, err error) {
	k, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	if err := s.checkPatch(k.Agent, &patch); err != nil {
		return nil, err
	}
	err = s.tx(ctx, func(tx *sql.Tx) error {
		if e, err = s.entryOrNew(ctx, tx, k, p.account); err != nil {
			return err
		}
		if err := s.freeLabel(ctx, tx, p, patch.Label); err != nil {
			return err
		}
		patch.apply(&e.Settings)
		if len(e.Levels) > maxLevels {
			return fmt.Errorf("%w: more than %d levels", ErrInvalid, maxLevels)
		}
		e.Updated = now()
		return s.rows.saveEntry(ctx, tx, e)
	})
	if err != nil {
		return nil, err
	}
	s.changed(e)
	return e, nil
}

func (s *Service) changed(e *Entry) {
	s.hub.publish(Event{Key: e.Key, Account: e.Account, Agent: e.Agent, At: time.Now().UTC(), Kind: Changed})
}

// Limits of settings.
const (
	maxLabel  = 64 // runes
	maxLevels = 32
	maxLevel  = 64 // bytes of a name, and of a value
	maxModel  = 256
)

// checkPatch refuses invalid settings, and resolves the model.
func (s *Service) checkPatch(agent string, p *Patch) error {
	if p.Label != nil && (len([]rune(*p.Label)) > maxLabel || !isPlain(*p.Label)) {
		return fmt.Errorf("%w: a label has up to %d characters, and none of control", ErrInvalid, maxLabel)
	}
	for name, level := range p.Levels {
		if name == "" || len(name) > maxLevel || !isPlain(name) || level != nil && (len(*level) > maxLevel || !isPlain(*level)) {
			return fmt.Errorf("%w: a level and its name have up to %d bytes, and none of control", ErrInvalid, maxLevel)
		}
	}
	if p.Headers != nil {
		checked, err := checkHeaders(*p.Headers)
		if err != nil {
			return err
		}
		p.Headers = &checked
	}
	if p.Model == nil || *p.Model == "" {
		return nil
	}
	if len(*p.Model) > maxModel || !isPlain(*p.Model) {
		return fmt.Errorf("%w: the name of a model has up to %d bytes, and none of control", ErrInvalid, maxModel)
	}
	name, err := s.Worker.Resolve(agent, *p.Model)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	p.Model = &name
	return nil
}

// freeLabel refuses a label that another session of the account has.
func (s *Service) freeLabel(ctx context.Context, q querier, p sessionRef, label *string) error {
	if label == nil || *label == "" {
		return nil
	}
	var others int
	err := q.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE account = ? AND label = ? AND key <> ?", p.account, *label, p.key).Scan(&others)
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: label already in use: %s", ErrInvalid, *label)
	}
	return err
}

func (p *Patch) apply(s *Settings) {
	if p.Label != nil {
		s.Label = *p.Label
	}
	if p.Model != nil {
		s.Model = *p.Model
	}
	if p.Headers != nil {
		s.Headers = *p.Headers
	}
	levels := maps.Clone(s.Levels)
	if levels == nil {
		levels = map[string]string{}
	}
	for name, level := range p.Levels {
		if level == nil || *level == "" {
			delete(levels, name)
		} else {
			levels[name] = *level
		}
	}
	if s.Levels = levels; len(levels) == 0 {
		s.Levels = nil
	}
}

// History returns the last messages of a session's transcript.
func (s *Service) History(ctx context.Context, v View, key string, most int) ([]chat.Message, error) {
	e, err := s.Get(ctx, v, key)
	if err != nil {
		return nil, err
	}
	if most <= 0 || most > MaxList {
		most = MaxList
	}
	return s.Worker.History(ctx, e, most)
}
