// Package content judges what commits contain, on the objects themselves: each
// commit on its own, because all of them are pushed, and the sum, because that is
// what people review. It reads a repository and changes nothing.
package content

import (
	"cmp"
	"time"

	"github.com/atoll-run/atoll/internal/contentpolicy"
)

// Policy says what may be pushed. Zero limits take the defaults.
type Policy struct {
	Commits      int   // 100
	Files        int   // changed ones, in the sum and in each commit; 1,000
	FileBytes    int64 // of one file, unpacked; 10 MiB
	TotalBytes   int64 // of all changed files of all commits, unpacked; 100 MiB
	MessageBytes int   // 64 KiB
	PathBytes    int   // 1,024
	// Time bounds Judge; 60 s.
	Time time.Duration
	// Protected are patterns of paths, with what a change to them means. Nil takes
	// the defaults; an empty list protects nothing.
	Protected []contentpolicy.Protection
	// Modules is what a reference to another repository means; "" is Blocked.
	Modules contentpolicy.Verdict
	// Known are secrets of the host, which must not be in anything.
	Known [][]byte
}

func (p Policy) withDefaults() Policy {
	p.Commits = cmp.Or(max(p.Commits, 0), 100)
	p.Files = cmp.Or(max(p.Files, 0), 1000)
	p.FileBytes = cmp.Or(max(p.FileBytes, 0), 10<<20)
	p.TotalBytes = cmp.Or(max(p.TotalBytes, 0), 100<<20)
	p.MessageBytes = cmp.Or(max(p.MessageBytes, 0), 64<<10)
	p.PathBytes = cmp.Or(max(p.PathBytes, 0), 1024)
	p.Time = cmp.Or(max(p.Time, 0), time.Minute)
	p.Modules = cmp.Or(p.Modules, contentpolicy.Blocked)
	if p.Protected == nil {
		p.Protected = contentpolicy.Protections()
	}
	return p
}

// Report is the judgement over a range of commits.
type Report struct {
	Base     string                  `json:"base"`
	Head     string                  `json:"head"`
	Commits  []string                `json:"commits"` // parents first
	Files    int                     `json:"files"`   // changed in the sum
	Bytes    int64                   `json:"bytes"`   // of all changed files of all commits, unpacked
	Findings []contentpolicy.Finding `json:"findings"`
	// Truncated says that there are more findings than these.
	Truncated bool `json:"truncated,omitempty"`
}

// maxFindings is how many findings a report holds.
const maxFindings = 200

// Verdict is the worst of the findings, and "" if there is none.
func (r *Report) Verdict() contentpolicy.Verdict {
	worst := contentpolicy.Verdict("")
	for _, f := range r.Findings {
		if f.Verdict == contentpolicy.Blocked {
			return contentpolicy.Blocked
		}
		worst = f.Verdict
	}
	return worst
}

func (r *Report) add(f contentpolicy.Finding) {
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, f)
		return
	}
	r.Truncated = true
	if f.Verdict == contentpolicy.Blocked { // a flood of small things does not hide a large one
		r.Findings[maxFindings-1] = f
	}
}
