package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Answer is what a person decides.
type Answer string

// The answers. Session and Rule also answer later questions with the same rule:
// those of the session, or all of the agent.
const (
	Once    Answer = "once"
	Session Answer = "session"
	Rule    Answer = "rule"
	Deny    Answer = "deny"
)

// Answers returns all answers.
func Answers() []Answer { return []Answer{Once, Session, Rule, Deny} }

// Allows reports whether the answer is a yes.
func (a Answer) Allows() bool { return a == Once || a == Session || a == Rule }

// State is the progress of a question.
type State string

// The states.
const (
	Open     State = "open"
	Answered State = "answered"
	Expired  State = "expired"
	Replaced State = "replaced" // it was asked again with other evidence
)

// Owner says whose action a question is about.
type Owner struct {
	Account string `json:"account,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
}

// Request is a question to be asked.
type Request struct {
	Kind    string // what asks, for example relay
	Subject string // what it asks about; a kind has one open question for each
	Owner   Owner
	Summary string
	// Evidence is what the person decides by, as text.
	Evidence string
	// Rule names what Session and Rule cover; "" allows neither.
	Rule string
	// For is how long the question stays open, at most MaxTime; 0 is DefaultTime.
	// Default is the answer when it expires; "" is Deny.
	For     time.Duration
	Default Answer
}

// Question is a question that was asked.
type Question struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Subject    string    `json:"subject"`
	Owner      Owner     `json:"owner"`
	Summary    string    `json:"summary"`
	Rule       string    `json:"rule,omitempty"`
	Evidence   string    `json:"evidence"`
	Hash       string    `json:"hash"` // SHA-256 of the evidence, in hexadecimal
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires"`
	Default    Answer    `json:"default"`
	State      State     `json:"state"`
	Answer     Answer    `json:"answer,omitempty"`
	AnsweredBy string    `json:"answeredBy,omitempty"`
	AnsweredAt time.Time `json:"answeredAt,omitzero"`
}

// The bounds of questions.
const (
	DefaultTime = 24 * time.Hour
	MaxTime     = 90 * 24 * time.Hour
	// MaxOpen is how many questions of one account are open at the same time, and
	// MaxOpenAll of all accounts; MaxKept is how many that are not open stay stored
	// for an account.
	MaxOpen     = 100
	MaxOpenAll  = 10_000
	MaxKept     = 1000
	MaxEvidence = 1 << 20 // bytes
	maxSummary  = 500
	maxName     = 300 // bytes of each name
)

// The errors of a queue.
var (
	ErrNotFound = errors.New("no such question")
	ErrTooMany  = fmt.Errorf("%d questions of this account are open, or %d in all", MaxOpen, MaxOpenAll)
	ErrAnswered = errors.New("the question was answered already")
	ErrExpired  = errors.New("the question has expired")
	ErrReplaced = errors.New("the question was replaced by one with other evidence")
	ErrChanged  = errors.New("the evidence is not what the answer is for")
)

// HashOf returns the hash of evidence.
func HashOf(evidence string) string {
	sum := sha256.Sum256([]byte(evidence))
	return hex.EncodeToString(sum[:])
}

// check fills in defaults and refuses what is out of bounds.
func (r *Request) check() error {
	if r.For == 0 {
		r.For = DefaultTime
	}
	if r.Default == "" {
		r.Default = Deny
	}
	for _, name := range []string{r.Kind, r.Subject, r.Rule, r.Owner.Account, r.Owner.Agent, r.Owner.Session, r.Owner.Run} {
		if len(name) > maxName || !utf8.ValidString(name) {
			return fmt.Errorf("a name of a question is longer than %d bytes, or no text", maxName)
		}
	}
	switch {
	case r.Kind == "" || r.Subject == "" || r.Summary == "":
		return errors.New("a question needs a kind, a subject and a summary")
	case len(r.Summary) > maxSummary || !utf8.ValidString(r.Summary):
		return fmt.Errorf("the summary of a question is longer than %d bytes, or no text", maxSummary)
	case len(r.Evidence) > MaxEvidence || !utf8.ValidString(r.Evidence):
		return fmt.Errorf("the evidence of a question is larger than %d bytes, or no text", MaxEvidence)
	case r.For < 0 || r.For > MaxTime:
		return fmt.Errorf("a question stays open for at most %s", MaxTime)
	case r.Default != Deny && r.Default != Once:
		return fmt.Errorf("the default of a question cannot be %q", r.Default)
	}
	return nil
}

// checkAnswer refuses answers that the question does not offer.
func (q *Question) checkAnswer(a Answer) error {
	switch {
	case !slices.Contains(Answers(), a):
		return fmt.Errorf("unknown answer %.20q; the answers are %v", a, Answers())
	case q.Rule == "" && (a == Session || a == Rule):
		return fmt.Errorf("a %s question is answered with once or deny", q.Kind)
	case a == Session && q.Owner.Session == "":
		return errors.New("the question belongs to no session")
	}
	return nil
}
