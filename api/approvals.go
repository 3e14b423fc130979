package api

import "time"

// Approval is a question that waits for a person, or its answer.
type Approval struct {
	ID         string        `json:"id"`
	Kind       string        `json:"kind" doc:"What asks, for example relay."`
	Subject    string        `json:"subject" doc:"What it asks about; a kind has one open question for each."`
	Owner      ApprovalOwner `json:"owner"`
	Summary    string        `json:"summary"`
	Rule       string        `json:"rule,omitempty" doc:"What the answers session and rule cover; without one they are refused."`
	Evidence   string        `json:"evidence,omitempty" doc:"What the answer is for. Lists leave it out."`
	Hash       string        `json:"hash" doc:"SHA-256 of the evidence, in hexadecimal."`
	Created    time.Time     `json:"created"`
	Expires    time.Time     `json:"expires"`
	Default    string        `json:"default" enum:"once|deny" doc:"The answer when it expires."`
	State      string        `json:"state" enum:"open|answered|expired|replaced"`
	Answer     string        `json:"answer,omitempty" enum:"once|session|rule|deny"`
	AnsweredBy string        `json:"answeredBy,omitempty"`
	AnsweredAt time.Time     `json:"answeredAt,omitzero"`
}

// ApprovalOwner says whose action a question is about.
type ApprovalOwner struct {
	Account string `json:"account,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
}

// ApprovalQuery filters questions.
type ApprovalQuery struct {
	All     bool   `query:"all" doc:"Also those that were answered, replaced or have expired."`
	Account string `query:"account" doc:"Only those of this billing account."`
	Kind    string `query:"kind" doc:"Only those of this kind."`
	Limit   int    `query:"limit" min:"1" max:"1000" doc:"At most so many; 1000 if not given."`
	Cursor  string `query:"cursor" doc:"The next of the page before."`
}

// Approvals is a list of questions, the newest first, without their evidence.
type Approvals struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next,omitempty" doc:"Cursor of the next page; none if this is the last."`
}

// ApprovalAnswer is a person's answer to a question.
type ApprovalAnswer struct {
	Answer string `json:"answer" enum:"once|session|rule|deny"`
	Hash   string `json:"hash" doc:"Of the evidence that the person saw; an answer to other evidence is refused."`
}

// AnsweredApproval is a question with its answer.
type AnsweredApproval struct {
	Approval Approval `json:"approval"`
	Note     string   `json:"note,omitempty" doc:"What became of what it asked about."`
}
