package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/contentpolicy"
)

// HoldKind is the kind of questions about commits that a person holds back or lets
// be pushed.
const HoldKind = "relay"

// holdTime is how long such a question stays open. The commits stay kept after it,
// and `atoll relay push` asks again.
const holdTime = 30 * 24 * time.Hour

// holdEvidence is what a person decides by. Head names the content: it is the hash
// of the commits that are pushed.
type holdEvidence struct {
	Run       string                  `json:"run"`
	Branch    string                  `json:"branch"`
	Start     string                  `json:"start"`
	Head      string                  `json:"head"`
	Project   string                  `json:"project"`
	Commits   int                     `json:"commits"`
	Files     int                     `json:"files"`
	Bytes     int64                   `json:"bytes"`
	Failed    bool                    `json:"runFailed,omitzero"`
	Piece     string                  `json:"piece,omitempty"`
	Findings  []contentpolicy.Finding `json:"findings"`
	Truncated bool                    `json:"truncated,omitzero"`
}

// NeedsPerson reports whether the commits wait for a person, who has not said no.
func (r *Record) NeedsPerson() bool {
	return r.Denied == "" && r.Report != nil && (r.Step == Waiting || r.Held && r.Step == Judged)
}

// Question returns the question to a person about the commits.
func (r *Record) Question() (*approval.Request, error) {
	var evidence bytes.Buffer
	encoder := json.NewEncoder(&evidence)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // it would make six bytes of one
	err := encoder.Encode(&holdEvidence{
		Run: r.Run, Branch: r.Work.Key.Branch(), Start: r.Work.Tip(), Head: r.Head, Project: r.Project,
		Commits: len(r.Report.Commits), Files: r.Report.Files, Bytes: r.Report.Bytes,
		Failed: r.Held && r.Piece == "", Piece: r.Piece, Findings: r.Report.Findings, Truncated: r.Report.Truncated,
	})
	if err != nil {
		return nil, err
	}
	return &approval.Request{
		Kind: HoldKind, Subject: r.Run, Summary: r.holdSummary(), Evidence: evidence.String(), For: holdTime,
		Owner: approval.Owner{Account: r.Account, Agent: r.Agent, Run: r.Run},
	}, nil
}

func (r *Record) holdSummary() string {
	why := "the run failed"
	switch {
	case r.Step == Waiting:
		why = counted(len(r.Report.Findings), "finding") + " of the content policy"
	case r.Piece != "":
		why = fmt.Sprintf("%.100s", r.Piece)
	}
	return fmt.Sprintf("push %s to %s? (%s)", counted(len(r.Report.Commits), "commit"), r.Work.Key.Branch(), why)
}

// counted returns a number with its noun, in the plural unless it is 1.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Deny keeps commits from being pushed that wait for a person.
func (r *Relay) Deny(record *Record, by string) error {
	record.Denied = by
	return r.save(record)
}
