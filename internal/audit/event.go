package audit

import (
	"time"
)

// Subject says whose request it was.
type Subject struct {
	Account, Agent, Session, Run, Attempt, Graph, Trace string
	KnownAs                                             string // the run's id as its caller knows it; "" if that is Run
}

// Event is a record to be written: a ModelRequest, or one of the structs of the
// other kinds. It has no field for a prompt, a key or a query.
type Event interface {
	header() (Kind, time.Time, *Subject)
	// appendFields appends the members of this kind. Texts that come from outside
	// are redacted.
	appendFields(b []byte, scrub func(string) string) []byte
	// limited reports whether the rate limit of its subject holds for the event:
	// a hostile caller can cause any number of them.
	limited() bool
}

// appendEvent appends an event as one line of JSON, without the line's end. Empty
// members are left out. The line begins with the time and the kind.
func appendEvent(b []byte, e Event, scrub func(string) string) []byte {
	kind, at, subject := e.header()
	b = append(b, `{"time":"`...)
	b = at.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
	b = append(b, '"')
	b = appendText(b, "kind", string(kind))
	b = subject.appendTo(b)
	b = e.appendFields(b, scrub)
	return append(b, '}')
}

func (s *Subject) appendTo(b []byte) []byte {
	b = appendText(b, "account", s.Account)
	b = appendText(b, "agent", s.Agent)
	b = appendText(b, "session", s.Session)
	b = appendText(b, "run", s.Run)
	b = appendText(b, "knownAs", s.KnownAs)
	b = appendText(b, "attempt", s.Attempt)
	b = appendText(b, "graph", s.Graph)
	return appendText(b, "trace", s.Trace)
}

// ExecEvent is a command that was started in a sandbox. Its arguments are only
// counted: they may hold prompts and secrets.
type ExecEvent struct {
	Time      time.Time
	Subject   Subject
	Sandbox   string
	Program   string
	Arguments int
}

func (e *ExecEvent) header() (Kind, time.Time, *Subject) { return Exec, e.Time, &e.Subject }
func (e *ExecEvent) limited() bool                       { return true }
func (e *ExecEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(b, "sandbox", e.Sandbox), "program", redact(e.Program, scrub))
	return appendNumber(b, "arguments", int64(e.Arguments))
}

// GitEvent is a step of the relay: what became of a run's commits.
type GitEvent struct {
	Time    time.Time
	Subject Subject
	Step    string
	Branch  string
	Head    string // the commit that is pushed
	Denied  string // the rule that blocks them, or the error of the last attempt
}

func (e *GitEvent) header() (Kind, time.Time, *Subject) { return Git, e.Time, &e.Subject }
func (e *GitEvent) limited() bool                       { return false }
func (e *GitEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(appendText(b, "event", e.Step), "branch", e.Branch), "head", e.Head)
	return appendText(b, "denied", redact(e.Denied, scrub))
}

// FileEvent is a decision of the sync gate about a file that a sandbox changed, or
// about a batch of them.
type FileEvent struct {
	Time    time.Time
	Subject Subject
	Event   string // applied, refused, overridden, rejected, undone, recovered
	Batch   string // the files that were applied together
	Files   int    // of a batch
	Path    string
	SHA256  string // of the content
	Result  string // of a batch that was recovered
	By      string
	Reason  string
}

func (e *FileEvent) header() (Kind, time.Time, *Subject) { return File, e.Time, &e.Subject }
func (e *FileEvent) limited() bool                       { return false }
func (e *FileEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendNumber(appendText(appendText(b, "event", e.Event), "batch", e.Batch), "files", int64(e.Files))
	b = appendText(appendText(appendText(b, "path", redact(e.Path, scrub)), "sha256", e.SHA256), "result", e.Result)
	return appendText(appendText(b, "by", redact(e.By, scrub)), "reason", redact(e.Reason, scrub))
}

// ApprovalEvent is a question to a person that was asked, answered or expired.
type ApprovalEvent struct {
	Time     time.Time
	Subject  Subject
	Event    string // asked, answered, expired
	ID       string
	Topic    string // what the question is about, for example relay
	Evidence string // SHA-256 of the evidence
	Answer   string
	By       string
}

func (e *ApprovalEvent) header() (Kind, time.Time, *Subject) { return Approval, e.Time, &e.Subject }
func (e *ApprovalEvent) limited() bool                       { return false }
func (e *ApprovalEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(appendText(b, "event", e.Event), "id", e.ID), "topic", e.Topic)
	return appendText(appendText(appendText(b, "evidence", e.Evidence), "answer", e.Answer), "by", redact(e.By, scrub))
}

// LoginEvent is a token of the gateway that was used for a connection, or
// refused.
type LoginEvent struct {
	Time    time.Time
	Subject Subject
	Token   string // its id, never its secret
	From    string // the address of the client
	Denied  string // why it was refused; "" if it was not
}

func (e *LoginEvent) header() (Kind, time.Time, *Subject) { return Login, e.Time, &e.Subject }
func (e *LoginEvent) limited() bool                       { return true }
func (e *LoginEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(b, "token", redact(e.Token, scrub)), "from", e.From)
	return appendText(b, "denied", redact(e.Denied, scrub))
}
