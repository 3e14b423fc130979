package sandboxcmd

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// explainedSecret says where a secret comes from and where it goes, never what
// it is.
type explainedSecret struct {
	Name   string        `json:"name"`
	Source string        `json:"source"` // "" if none has a value
	Others []string      `json:"others"` // the sources that do not count, in order
	Hosts  []string      `json:"hosts"`
	Env    string        `json:"env"`
	Header string        `json:"header"`
	Error  string        `json:"error"` // why there is no value
	At     config.Origin `json:"-"`
}

func explainSecrets(ctx context.Context, s *provide.Settings) []explainedSecret {
	named, err := s.Config.Secrets()
	if err != nil {
		return []explainedSecret{{Error: err.Error()}}
	}
	list := []explainedSecret{}
	for i := range named {
		list = append(list, explainSecret(ctx, s, &named[i]))
	}
	return list
}

// explainSecret names the first source that has a value. Programs, keyrings and
// encrypted files, which may ask a person for something, are not opened: they
// count as having one.
func explainSecret(ctx context.Context, s *provide.Settings, n *config.NamedSecret) explainedSecret {
	x := explainedSecret{Name: n.Name, Others: []string{}, Hosts: n.Hosts, Env: n.Env, Header: n.Header, At: n.At}
	sources, err := s.SecretSources(n)
	if err != nil {
		x.Error = err.Error()
		return x
	}
	for i, source := range sources {
		from, err := n.From[i], error(nil)
		if from.Env != "" || from.File != "" {
			_, err = source.Read(ctx)
		}
		switch absent := errors.Is(err, secret.ErrAbsent) || errors.Is(err, fs.ErrNotExist); {
		case x.Source != "" || absent:
			x.Others = append(x.Others, source.Name())
		case err != nil:
			x.Source, x.Error = source.Name(), err.Error()
		default:
			x.Source = source.Name()
		}
	}
	if x.Source == "" {
		x.Error = "no source has a value"
	}
	return x
}

// secrets says what sandboxes use without seeing it.
func (pg *page) secrets() {
	if len(pg.x.Secrets) == 0 {
		return
	}
	pg.title("Secrets")
	for _, s := range pg.x.Secrets {
		pg.secret(s)
	}
}

func (pg *page) secret(s explainedSecret) {
	if s.Error != "" {
		pg.painted(s.Name, s.Error, "", pg.style.Warn)
	} else {
		pg.fact(s.Name, "from "+s.Source, "")
	}
	if len(s.Others) > 0 {
		pg.note("not from " + strings.Join(s.Others, ", "))
	}
	inside := "no variable inside"
	if s.Env != "" {
		inside = "a placeholder inside as " + s.Env
	}
	pg.note("sent to " + strings.Join(s.Hosts, ", ") + " in the header " + s.Header + "; " + inside)
	pg.note("← " + settingText(s.At, "secrets."+s.Name))
}
