package egresscmd

import (
	"net"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// maxRecords is how many records of the audit log are read at most, the newest.
const maxRecords = 100_000

// record is what the audit log has of a connection.
type record struct {
	Time     time.Time `json:"time"`
	Agent    string    `json:"agent,omitempty"`
	Account  string    `json:"account,omitempty"`
	Run      string    `json:"run,omitempty"`
	Sandbox  string    `json:"sandbox"`
	Exec     string    `json:"exec,omitempty"`
	Event    string    `json:"event"`
	Name     string    `json:"name"`
	Port     int       `json:"port"`
	Mode     string    `json:"mode,omitempty"`
	Method   string    `json:"method,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Denied   string    `json:"denied,omitempty"`
	Route    string    `json:"route,omitempty"`
	BytesOut int64     `json:"bytesOut"`
	BytesIn  int64     `json:"bytesIn"`
}

// target is the name with the port; the name alone of a lookup.
func (r *record) target() string {
	if r.Port == 0 {
		return r.Name
	}
	return net.JoinHostPort(r.Name, strconv.Itoa(r.Port))
}

func (r *record) isDenied() bool { return r.Event == audit.EgressDenied }

// filter chooses records.
type filter struct {
	agent, sandbox string
	denied         bool
	since          string
	from           time.Time
}

func (f *filter) add(cmd *cobra.Command, since string) {
	cmd.Flags().StringVar(&f.agent, "agent", "", "only this agent `id`")
	cmd.Flags().StringVar(&f.sandbox, "sandbox", "", "only the sandbox of this `name`")
	console.SinceFlag(cmd, &f.since, since)
}

func (f *filter) read(cmd *cobra.Command) (err error) {
	f.from, err = console.Moment(cmd, f.since, time.Now())
	return err
}

func (f *filter) matches(r *record) bool {
	return !r.Time.Before(f.from) && (f.agent == "" || r.Agent == f.agent) && (f.sandbox == "" || r.Sandbox == f.sandbox) && (!f.denied || r.isDenied())
}

// records returns the records of egress that a filter chooses, the oldest first.
func records(s *provide.Settings, f *filter, most int) (found []record, err error) {
	read := func(text string) (r record, ok bool) {
		var kind struct {
			Kind string `json:"kind"`
		}
		if json.Unmarshal([]byte(text), &kind) != nil || audit.KindOf(kind.Kind) != audit.Egress {
			return r, false
		}
		return r, json.Unmarshal([]byte(text), &r) == nil && f.matches(&r)
	}
	entries, err := audit.Tail(service.AuditDir(s), most, func(text string) bool { _, ok := read(text); return ok })
	for _, entry := range entries {
		if r, ok := read(entry.JSON); ok {
			found = append(found, r)
		}
	}
	return found, err
}

// find returns the settings and the records that the flags of a verb choose, the newest.
func (e *env) find(cmd *cobra.Command, f *filter, most int, asJSON bool) (*provide.Settings, []record, error) {
	if err := f.read(cmd); err != nil {
		return nil, nil, err
	}
	settings, err := e.Load()
	if err != nil {
		return nil, nil, e.ConfigError(err, asJSON)
	}
	found, err := records(settings, f, most)
	return settings, found, err
}
