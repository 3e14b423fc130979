package client

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/preset"
)

// endpoint returns the server of a URL of http or https.
func endpoint(address string) (preset.Endpoint, bool) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return preset.Endpoint{}, false
	}
	host, err := hostname.Canonical(u.Hostname())
	if err != nil {
		return preset.Endpoint{}, false
	}
	if _, err := hostname.ParsePattern(host); err != nil {
		return preset.Endpoint{}, false
	}
	e := preset.Endpoint{Host: host, Port: 443, Plain: u.Scheme == "http"}
	if e.Plain {
		e.Port = 80
	}
	if text := u.Port(); text != "" {
		if e.Port, err = strconv.Atoi(text); err != nil || e.Port < 1 || e.Port > 65535 {
			return preset.Endpoint{}, false
		}
	}
	return e, true
}

var errNoServer = errors.New("its configuration names no server")

// found returns the servers of addresses, each once. Addresses that are not
// names, files and the like are left out.
func found(name string, addresses []string) preset.Found {
	var f preset.Found
	for _, address := range addresses {
		if e, ok := endpoint(address); ok && !slices.Contains(f.Endpoints, e) && len(f.Endpoints) < maxEndpoints {
			f.Endpoints = append(f.Endpoints, e)
		}
	}
	if len(f.Endpoints) == 0 {
		f.Err = fmt.Errorf("%s: %w", name, errNoServer)
	}
	return f
}

// file returns the text of a regular file outside of projects, "" if there is
// none or it is too large.
func (r *reader) file(path string) string {
	if r.inProject(path) {
		return ""
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a named pipe must not hold us up
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return string(text)
}

// files returns the names of the entries of a directory, at most maxFiles.
func (r *reader) files(dir string) []string {
	if r.inProject(dir) {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // it was only read
	names, _ := d.Readdirnames(maxFiles)
	slices.Sort(names)
	return names
}
