package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
)

// Remote is a repository on a server, and what opens it. Where it is comes from
// the host's configuration and from nowhere else.
type Remote struct {
	URL    string // https, or a directory of this host
	User   string
	Secret secret.Value // none if the server asks for none
	CAFile string       // a certificate authority beside the host's
	Env    []string     // variables that name the host's proxies
	// Plain allows http without encryption, for servers on this host.
	Plain bool
}

// ErrStale means that the branch is not where it was last seen: another client
// pushed. ErrRefused means that the server refuses the credential.
var (
	ErrStale   = errors.New("the branch moved meanwhile")
	ErrRefused = errors.New("the server refuses the credential")
)

// Heads looks up which commit each of the refs is, on the server. Those that are
// not there are not in the answer.
func (r *Repo) Heads(ctx context.Context, from *Remote, refs ...string) (map[string]string, error) {
	args := []string{"ls-remote", "--quiet"}
	if !slices.Contains(refs, "HEAD") {
		args = append(args, "--refs")
	}
	out, err := r.remote(ctx, from, append(append(args, "--", from.URL), refs...)...)
	if err != nil {
		return nil, err
	}
	heads := map[string]string{}
	for line := range strings.Lines(string(out)) {
		id, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !IsID(id) {
			return nil, fmt.Errorf("git ls-remote: cannot read %q", line)
		}
		heads[ref] = id
	}
	return heads, nil
}

// Fetch brings refs of the server, under the same names.
func (r *Repo) Fetch(ctx context.Context, from *Remote, refs ...string) error {
	return r.FetchTo(ctx, from, "", refs...)
}

// FetchTo brings refs of the server, with something before their names.
func (r *Repo) FetchTo(ctx context.Context, from *Remote, before string, refs ...string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--no-show-forced-updates", "--", from.URL}
	for _, ref := range refs {
		args = append(args, "+"+ref+":"+before+ref)
	}
	_, err := r.remote(ctx, from, args...)
	return err
}

// Push makes one branch of the server be a commit, if it still is what it was
// last seen to be; "" means that it was not there.
func (r *Repo) Push(ctx context.Context, to *Remote, ref, commit, seen string) error {
	_, err := r.remote(ctx, to, "push", "--porcelain", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+seen, "--", to.URL, commit+":"+ref)
	return err
}

// remote runs git with the network and with the credential, which it reads from
// a descriptor when the server asks for it.
func (r *Repo) remote(ctx context.Context, to *Remote, args ...string) ([]byte, error) {
	protocol, err := to.protocol()
	if err != nil {
		return nil, err
	}
	addresses, err := to.addressSettings(ctx)
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	key, err := to.credentialFile()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	kept := &confined.Bounded{To: &out, Left: MaxOutput}
	err = confined.Run(ctx, &confined.Program{
		Path: r.git, Args: slices.Concat(settings(), to.settings(), addresses, args), Env: append(environment(r.dir), append([]string{"GIT_ALLOW_PROTOCOL=" + protocol}, to.Env...)...),
		Stdout: kept, Files: []*os.File{key}, Network: true, Limits: confined.Limits{CPU: 10 * time.Minute, Memory: 4 << 30, File: 16 << 30},
	})
	err = errors.Join(explainRemote(args[0], to, err, out.String()), key.Close())
	return out.Bytes(), err
}

// protocol refuses everything that would do more than carry objects.
func (to *Remote) protocol() (string, error) {
	if strings.HasPrefix(to.URL, "/") {
		return "file", nil
	}
	u, err := url.Parse(to.URL)
	switch {
	case err != nil || u.Host == "":
		return "", errhint.With(errors.New("the remote repository's address cannot be read"), "use https://host/path or an absolute directory")
	case u.User != nil:
		return "", errhint.With(errors.New("the remote repository's address holds a credential"), "take it out of the address; relay.token says where a credential comes from")
	case u.Scheme == "https" || u.Scheme == "http" && to.Plain:
		return u.Scheme, nil
	}
	return "", errhint.With(fmt.Errorf("the remote repository's address has the scheme %q", u.Scheme), "use https")
}

// settings let git ask for the credential where we put it: descriptor 3. A
// helper is asked to store as well, which does nothing.
func (to *Remote) settings() []string {
	list := []string{"-c", `credential.helper=!f() { test "$1" = get && cat <&3; }; f`}
	if to.CAFile != "" {
		list = append(list, "-c", "http.sslCAInfo="+to.CAFile)
	}
	return list
}

// credentialFile is a pipe with the credential, which can be read once and has no
// name.
func (to *Remote) credentialFile() (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if !to.Secret.IsEmpty() {
		_, err = fmt.Fprintf(write, "username=%s\npassword=%s\n", to.User, to.Secret.Reveal())
	}
	return read, errors.Join(err, write.Close())
}

func explainRemote(verb string, to *Remote, err error, said string) error {
	if err == nil {
		return nil
	}
	text := err.Error() + said
	switch {
	case strings.Contains(text, "stale info") || strings.Contains(text, "fetch first") || strings.Contains(text, "cannot lock ref"):
		return fmt.Errorf("git %s: %w", verb, ErrStale)
	case strings.Contains(text, "Authentication failed") || strings.Contains(text, "could not read Username") || strings.Contains(text, "error: 403"):
		return errhint.With(fmt.Errorf("git %s to %s: %w", verb, to.URL, ErrRefused), "check that the token is valid and may write to this repository")
	}
	if reason := rejection(said); reason != "" {
		return errhint.With(fmt.Errorf("git %s: %s", verb, reason), "the commits are kept; `atoll relay retry` tries again")
	}
	return fmt.Errorf("git %s: %w", verb, err)
}

// rejection is what a push was refused with, in git's own words.
func rejection(said string) string {
	for line := range strings.Lines(said) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) == 3 && fields[0] == "!" {
			return strings.Map(func(r rune) rune {
				if unicode.IsPrint(r) {
					return r
				}
				return '?'
			}, fields[2])
		}
	}
	return ""
}
