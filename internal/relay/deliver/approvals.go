package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
)

// Approvals returns the queue of questions to a person. Its events are in the
// audit log.
func (d *Deliverer) Approvals() *approval.Queue { return d.approvals }

func (d *Deliverer) auditApproval(e approval.Event) {
	q := &e.Question
	log, err := d.models.AuditLog()
	if err == nil {
		err = log.Append(&audit.ApprovalEvent{
			Time: time.Now(), Subject: audit.Subject{Account: q.Owner.Account, Agent: q.Owner.Agent, Session: q.Owner.Session, Run: q.Owner.Run},
			Event: e.Type, ID: q.ID, Topic: q.Kind, Evidence: q.Hash, Answer: string(q.Answer), By: q.AnsweredBy,
		})
	}
	if err != nil {
		d.Logger.Error("audit of an approval", "id", q.ID, "error", err)
	}
}

// AnswerApproval answers a question and does what follows: commits are pushed. The
// note says what became of that. It can be repeated after a crash.
func (d *Deliverer) AnswerApproval(ctx context.Context, id string, reply approval.Reply) (q *approval.Question, note string, err error) {
	if q, err = d.Approvals().Get(ctx, id); err != nil {
		return nil, "", err
	}
	if q.Kind != relay.HoldKind {
		q, err = d.Approvals().Answer(ctx, id, reply)
		return q, "", err
	}
	relays, err := d.AuditedRelays()
	if err != nil {
		return q, "", err
	}
	record, err := relays.Load(q.Subject)
	if err != nil {
		return q, "", fmt.Errorf("commits of run %s: %w", q.Subject, err)
	}
	if err := d.checkHold(ctx, record, q); err != nil {
		return q, "", err
	}
	if q, err = d.Approvals().Answer(ctx, id, reply); err != nil {
		return q, "", err
	}
	err = d.applyHold(ctx, relays, record, q)
	return q, Note(record), err
}

// checkHold refuses a question whose evidence is not what the record says now, and
// asks again with that.
func (d *Deliverer) checkHold(ctx context.Context, record *relay.Record, q *approval.Question) error {
	if !record.NeedsPerson() {
		return nil
	}
	now, err := record.Question()
	if err != nil || approval.HashOf(now.Evidence) == q.Hash {
		return err
	}
	_, err = d.Approvals().Ask(ctx, now)
	return errors.Join(errhint.With(approval.ErrChanged, "`atoll approvals list` shows the question with the evidence of now"), err)
}

func (d *Deliverer) applyHold(ctx context.Context, relays *Relays, record *relay.Record, q *approval.Question) error {
	if !q.Answer.Allows() {
		if !record.NeedsPerson() {
			return nil
		}
		return relays.Deny(record, q.AnsweredBy)
	}
	if record.Step == relay.Waiting {
		if err := relays.Approve(record, q.AnsweredBy); err != nil {
			return err
		}
	}
	return d.Send(ctx, record)
}

// ApproveHold is a person's yes to commits that the content policy holds back,
// without naming the question.
func (d *Deliverer) ApproveHold(ctx context.Context, relays *Relays, record *relay.Record, by string) error {
	if record.Step == relay.Waiting {
		if err := d.answerHold(ctx, record, by); err != nil {
			return err
		}
	}
	return relays.Approve(record, by)
}

// ReleaseHold is a person's yes to commits of a run that failed, or that are not on
// its branch.
func (d *Deliverer) ReleaseHold(ctx context.Context, record *relay.Record, by string) error {
	if !record.Held || record.Step != relay.Judged {
		return nil
	}
	return d.answerHold(ctx, record, by)
}

// answerHold answers the question about commits with yes, and asks it first where
// none is open. That too many are open keeps no person from answering.
func (d *Deliverer) answerHold(ctx context.Context, record *relay.Record, by string) error {
	record.Denied = "" // the later answer counts
	request, err := record.Question()
	if err != nil {
		return err
	}
	q, err := d.Approvals().Ask(ctx, request)
	if errors.Is(err, approval.ErrTooMany) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = d.Approvals().Answer(ctx, q.ID, approval.Reply{Answer: approval.Once, Hash: q.Hash, By: by})
	return err
}

// askPatience bounds the writing of a question: a step of the relay waits for it.
const askPatience = 30 * time.Second

// askAboutHold asks a person about commits that wait for one. When too many
// questions are open the commits are kept all the same, and `atoll relay push`
// answers for them.
func (d *Deliverer) askAboutHold(record *relay.Record) error {
	if !record.NeedsPerson() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	request, err := record.Question()
	if err != nil {
		return err
	}
	_, err = d.Approvals().Ask(ctx, request)
	return err
}
