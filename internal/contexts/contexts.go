// Package contexts keeps the gateways that a person works with, by name, with their
// tokens, in one file that only its owner can read.
package contexts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	fileName = "contexts.json"
	maxFile  = 1 << 20
	// Most is how many contexts there may be.
	Most = 100
	// MaxToken bounds a token.
	MaxToken = 8192
)

// The variables that name a gateway where no flag does.
const (
	URLVariable   = "ATOLL_GATEWAY_URL"
	TokenVariable = "ATOLL_GATEWAY_TOKEN"
)

// Context is a gateway with the token of a person.
type Context struct {
	URL            string `json:"url"`
	Token          string `json:"token,omitempty"`
	TrustedNetwork bool   `json:"trustedNetwork,omitempty"` // plain HTTP beyond this machine
}

// Contexts are all contexts of a person.
type Contexts struct {
	Current  string             `json:"current,omitempty"`
	Contexts map[string]Context `json:"contexts"`

	path string
}

// ErrNone is the cause of an error about a gateway that nothing names.
var ErrNone = errors.New("no gateway is named")

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// Load reads the contexts in a state directory; without a file there are none.
func Load(state string) (*Contexts, error) {
	c := &Contexts{Contexts: map[string]Context{}, path: filepath.Join(state, fileName)}
	text, err := readOwn(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, errhint.With(fmt.Errorf("%s: %w", c.path, err), "mend it, or remove it and add the contexts again")
	}
	if c.Contexts == nil {
		c.Contexts = map[string]Context{}
	}
	return c, nil
}

// readOwn reads a file of tokens, and refuses one that other users can read.
func readOwn(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, errhint.With(fmt.Errorf("%s holds tokens, and others can read it", path), "run chmod 600 "+path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return text, err
}

// Add adds a context, or replaces the one of this name. The first one becomes the
// current one.
func (c *Contexts) Add(name string, to Context) error {
	if !nameForm.MatchString(name) {
		return errhint.With(fmt.Errorf("%q is no name of a context", name), "use letters, digits, '_', '-' and '.', at most 63")
	}
	if _, there := c.Contexts[name]; !there && len(c.Contexts) >= Most {
		return errhint.With(fmt.Errorf("there are %d contexts already", Most), "remove one with `atoll context rm`")
	}
	if err := to.check(); err != nil {
		return err
	}
	c.Contexts[name] = to
	if len(c.Contexts) == 1 {
		c.Current = name
	}
	return c.save()
}

// check refuses addresses and tokens that cannot be sent, and a token in the clear.
func (t *Context) check() error {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return errhint.With(fmt.Errorf("%q is no address of a gateway", t.URL), "write it like https://atoll.example.org")
	}
	if len(t.Token) > MaxToken || strings.ContainsFunc(t.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errhint.With(errors.New("the token is not one"), "give what `atoll token create` printed, and nothing else")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) && !t.TrustedNetwork {
		return errhint.With(fmt.Errorf("%s would send the token in the clear", t.URL), "use https://, or --trusted-network where everybody on the way is trusted")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Use makes a context the current one.
func (c *Contexts) Use(name string) error {
	if _, err := c.get(name); err != nil {
		return err
	}
	c.Current = name
	return c.save()
}

// Remove forgets a context.
func (c *Contexts) Remove(name string) error {
	if _, err := c.get(name); err != nil {
		return err
	}
	delete(c.Contexts, name)
	if c.Current == name {
		c.Current = ""
	}
	return c.save()
}

// Names returns the names of all contexts in order.
func (c *Contexts) Names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

func (c *Contexts) get(name string) (Context, error) {
	found, ok := c.Contexts[name]
	if !ok {
		return found, errhint.With(fmt.Errorf("there is no context %q", name), "`atoll context ls` lists them")
	}
	return found, nil
}

// Resolve returns the gateway that is meant: the named one (an address, or a context),
// the variables' one, the current context. A named address has the token of the variable.
func (c *Contexts) Resolve(named string, getenv func(string) string) (Context, error) {
	switch address := getenv(URLVariable); {
	case strings.Contains(named, "://"):
		return Context{URL: named, Token: getenv(TokenVariable)}, nil
	case named != "":
		return c.get(named)
	case address != "":
		return Context{URL: address, Token: getenv(TokenVariable)}, nil
	case c.Current != "":
		return c.get(c.Current)
	}
	return Context{}, errhint.With(ErrNone, "give --gateway URL, set "+URLVariable+", or run `atoll context add NAME URL`")
}

// save writes the file beside itself and puts it in place as a whole.
func (c *Contexts) save() error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), fileName+".*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
