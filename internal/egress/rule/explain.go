package rule

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Explanation is what a policy says about one request, for people.
type Explanation struct {
	Name   string
	Port   int
	Method string // "" if the request itself is not judged
	Target string // path and query
	Decision
	Notes []string // what is worth knowing besides
}

// schemes are the ports of the schemes that Explain knows.
var schemes = map[string]int{"https": portHTTPS, "wss": portHTTPS, "http": portHTTP, "ws": portHTTP, "ssh": 22, "git": 9418, "ftp": 21}

// Explain says what happens to a request of a URL, or to a connection to
// NAME[:PORT], which is one to port 443 without a port.
func (p *Policy) Explain(method, address string) (Explanation, error) {
	e, err := parseAddress(address)
	if err != nil {
		return e, err
	}
	e.Decision = p.Connect(e.Name, e.Port)
	if e.Allow && e.judgesRequests() && e.Target != "" {
		e.Method = strings.ToUpper(method)
		if e.Method == "" {
			e.Method = "GET"
		}
		e.Decision = p.Request(e.Name, e.Port, e.Method, e.Target)
	}
	e.note(p, method)
	return e, nil
}

// parseAddress splits a URL, or NAME[:PORT], which has no target.
func parseAddress(address string) (e Explanation, err error) {
	if !strings.Contains(address, "://") {
		e.Name, e.Port, err = hostname.SplitPort(address)
		if e.Port == 0 {
			e.Port = portHTTPS
		}
		return e, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return e, fmt.Errorf("%q is no URL", address)
	}
	e.Name, e.Port, e.Target = u.Hostname(), schemes[u.Scheme], u.RequestURI()
	if text := u.Port(); text != "" {
		e.Port, err = strconv.Atoi(text)
	}
	if err != nil || e.Port == 0 || e.Name == "" {
		return e, errhint.With(fmt.Errorf("%q has no scheme or port that is known", address), "write https://NAME/PATH or NAME:PORT")
	}
	return e, nil
}

// note adds what the decision does not say.
func (e *Explanation) note(p *Policy, method string) {
	add := func(text string) { e.Notes = append(e.Notes, text) }
	if shown := hostname.Unicode(e.Name); shown != e.Name {
		add("the name is read as " + strconv.Quote(shown))
	}
	if !e.Allow {
		return
	}
	if e.Unbilled {
		add("unbilled: the host serves models, and nothing that goes there is counted or paid through the model proxy")
	}
	if e.Action == Splice && method != "" && !strings.EqualFold(method, "GET") {
		add("methods and paths are not seen in the mode splice")
	}
	if network := hostname.SharedNetwork(e.Name); network != "" && e.Action == Splice {
		add("the name is on " + network + ", which serves many owners: in the mode splice others of them can be reached behind it")
	}
	if e.Upgrade {
		add("it is sent on with TLS, to port 443")
	}
	if proxy := p.Via(e.Name); proxy != "" {
		add("it goes through " + proxy + ", which resolves the name: addresses are not checked here")
	} else if p.upstream != "" {
		add("it goes through " + p.upstream + ", which resolves the name: addresses are not checked here")
	}
}
