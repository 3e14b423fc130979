package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
)

// QuestionKind is the kind of questions about changes that need a person.
const QuestionKind = "sync"

const (
	questionTime = 30 * 24 * time.Hour
	maxAsked     = 200 // entries of one question
)

// asked is an entry of a question's evidence. The hash names what is applied.
type asked struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Mode    string   `json:"mode,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Link    string   `json:"link,omitempty"`
	Reasons []string `json:"reasons"`
}

// Question returns the question to a person about the entries that need approval;
// nil if there are none. Subject names the overlay.
func (s *Set) Question(subject, base string, owner approval.Owner) (*approval.Request, error) {
	entries := s.needApproval()
	if len(entries) == 0 {
		return nil, nil
	}
	list := []asked{}
	for _, e := range entries {
		row := asked{Path: e.Path, Kind: string(e.Kind), Mode: e.Mode.String(), SHA256: e.SHA256, Link: e.Link}
		for _, f := range e.Reasons {
			row.Reasons = append(row.Reasons, f.Detail)
		}
		list = append(list, row)
	}
	var evidence bytes.Buffer
	encoder := json.NewEncoder(&evidence)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // it would make six bytes of one
	if err := encoder.Encode(list); err != nil {
		return nil, err
	}
	return &approval.Request{
		Kind: QuestionKind, Subject: subject, Owner: owner, For: questionTime, Evidence: evidence.String(),
		Summary: strings.ToValidUTF8(fmt.Sprintf("apply what needs approval to %.300s? (%d changes)", base, len(list)), ""),
	}, nil
}

func (s *Set) needApproval() (entries []*Entry) {
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Verdict == Approval && len(entries) < maxAsked {
			entries = append(entries, e)
		}
	}
	return entries
}

// ActOn does what a person answered to the question about the last set: approved
// entries are applied, others rejected. It does nothing if the question is open, or
// was about other content.
func (g *Gate) ActOn(ctx context.Context, q *approval.Question, r *approval.Request) (*Applied, error) {
	set, err := g.Last()
	if err != nil || q.State != approval.Answered || q.Hash != approval.HashOf(r.Evidence) {
		return nil, err
	}
	var choices []Choice
	var paths []string
	for _, e := range set.needApproval() {
		choices = append(choices, Choice{e.Path, e.SHA256})
		paths = append(paths, e.Path)
	}
	if !q.Answer.Allows() {
		_, err := g.Reject(paths, q.AnsweredBy)
		return nil, err
	}
	for _, choice := range choices {
		err = errors.Join(err, g.Override(choice.Path, choice.SHA256, "answer to question "+q.ID, q.AnsweredBy))
	}
	if err != nil {
		return nil, err
	}
	return g.Approve(ctx, choices, Decision{By: q.AnsweredBy})
}
