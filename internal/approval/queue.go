package approval

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/store"
)

// Queue is the queue of one installation. It is safe for concurrent use, also by
// several processes.
type Queue struct {
	db  *store.DB
	now func() time.Time

	mu          sync.Mutex
	subscribers map[int]func(Event)
	next        int
}

// New returns the queue in a database; now is the clock, nil for the real one.
func New(db *store.DB, now func() time.Time) *Queue {
	if now == nil {
		now = time.Now
	}
	return &Queue{db: db, now: now, subscribers: map[int]func(Event){}}
}

// Ask asks a question. The same question with the same evidence is asked once;
// other evidence replaces the open question. An earlier lasting answer for the
// rule answers at once. It fails with ErrTooMany when the account has MaxOpen.
func (q *Queue) Ask(ctx context.Context, r *Request) (*Question, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	now := q.now()
	asked := &Question{
		ID: "q" + strings.ToLower(rand.Text()[:12]), Kind: r.Kind, Subject: r.Subject, Owner: r.Owner, Summary: r.Summary, Rule: r.Rule,
		Evidence: r.Evidence, Hash: HashOf(r.Evidence), Created: now, Expires: now.Add(r.For), Default: r.Default, State: Open,
	}
	var events []Event
	err := q.tx(ctx, func(tx *sql.Tx) (err error) {
		if events, err = expire(ctx, tx, now); err != nil {
			return err
		}
		asked, err = ask(ctx, tx, asked, &events)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.publish(events)
	return asked, nil
}

func ask(ctx context.Context, tx *sql.Tx, asked *Question, events *[]Event) (*Question, error) {
	open, err := selectOne(ctx, tx, "kind = ? AND subject = ? AND state = 'open'", asked.Kind, asked.Subject)
	switch {
	case err == nil && open.Hash == asked.Hash && open.Owner == asked.Owner:
		return open, nil
	case err == nil:
		if _, err := tx.ExecContext(ctx, "UPDATE approvals SET state = ? WHERE id = ?", Replaced, open.ID); err != nil {
			return nil, err
		}
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	if err := checkOpen(ctx, tx, asked.Owner.Account); err != nil {
		return nil, err
	}
	if err := answerByRule(ctx, tx, asked); err != nil {
		return nil, err
	}
	*events = append(*events, Event{EventAsked, *asked})
	if asked.State == Answered {
		*events = append(*events, Event{EventAnswered, *asked})
	}
	return asked, errors.Join(insert(ctx, tx, asked), prune(ctx, tx, asked.Owner.Account))
}

// checkOpen bounds the open questions of an account: an agent may cause any number.
func checkOpen(ctx context.Context, tx *sql.Tx, account string) error {
	var own, all int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FILTER (WHERE account = ?), count(*) FROM approvals WHERE state = 'open'", account).Scan(&own, &all)
	if err != nil {
		return err
	}
	if own >= MaxOpen || all >= MaxOpenAll {
		return ErrTooMany
	}
	return nil
}

// answerByRule answers a question that an earlier lasting answer covers.
func answerByRule(ctx context.Context, tx *sql.Tx, asked *Question) error {
	if asked.Rule == "" {
		return nil
	}
	earlier, err := selectOne(ctx, tx, `kind = ? AND rule = ? AND account = ? AND agent = ? AND state = 'answered'
		AND (answer = 'rule' OR answer = 'session' AND session = ? AND session <> '') ORDER BY answered_at_ms DESC`,
		asked.Kind, asked.Rule, asked.Owner.Account, asked.Owner.Agent, asked.Owner.Session)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	asked.State, asked.Answer, asked.AnsweredBy, asked.AnsweredAt = Answered, earlier.Answer, earlier.AnsweredBy, asked.Created
	return nil
}

// prune removes the oldest closed questions of an account beyond MaxKept. Lasting
// answers stay: they decide later questions.
func prune(ctx context.Context, tx *sql.Tx, account string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM approvals WHERE id IN (SELECT id FROM approvals
		WHERE account = ? AND state <> 'open' AND answer NOT IN ('rule', 'session') ORDER BY created_at_ms DESC LIMIT -1 OFFSET ?)`, account, MaxKept)
	return err
}

// Reply is a person's answer to a question.
type Reply struct {
	Answer Answer
	Hash   string // of the evidence that the person saw
	By     string
}

// Answer answers a question. Of several answers the first counts; repeating it is
// no error. It fails with ErrAnswered, ErrExpired, ErrReplaced or ErrChanged.
func (q *Queue) Answer(ctx context.Context, id string, r Reply) (*Question, error) {
	now := q.now()
	var events []Event
	var found *Question
	var refused error
	err := q.tx(ctx, func(tx *sql.Tx) (err error) {
		if events, err = expire(ctx, tx, now); err != nil {
			return err
		}
		if found, err = selectOne(ctx, tx, "id = ?", id); err != nil {
			return err
		}
		if refused = found.accepts(&r); refused != nil || found.State == Answered {
			return nil // what expired is kept
		}
		found.State, found.Answer, found.AnsweredBy, found.AnsweredAt = Answered, r.Answer, r.By, now
		events = append(events, Event{EventAnswered, *found})
		_, err = tx.ExecContext(ctx, "UPDATE approvals SET state = ?, answer = ?, answered_by = ?, answered_at_ms = ? WHERE id = ?", Answered, r.Answer, r.By, now.UnixMilli(), id)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.publish(events)
	return found, refused
}

// accepts says why a question does not take a reply.
func (q *Question) accepts(r *Reply) error {
	if err := q.checkAnswer(r.Answer); err != nil {
		return err
	}
	switch {
	case r.By == "" || len(r.By) > maxName:
		return errors.New("an answer needs the name of who gives it")
	case q.State == Expired:
		return ErrExpired
	case q.State == Replaced:
		return ErrReplaced
	case r.Hash != q.Hash:
		return ErrChanged
	case q.State == Answered && (q.Answer != r.Answer || q.AnsweredBy != r.By):
		return fmt.Errorf("%w: %s, by %s", ErrAnswered, q.Answer, q.AnsweredBy)
	}
	return nil
}

func (q *Queue) tx(ctx context.Context, f func(*sql.Tx) error) error {
	err := q.db.Tx(ctx, f)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooMany) {
		return err
	}
	return q.db.Explain(err)
}
