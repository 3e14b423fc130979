package npm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// settings are those of npm that say where packages are and who asks for them, by key.
type settings map[string]string

const maxSettings = 1 << 20 // bytes of a file of settings

// readSettings reads the files of npm, those of the machine first, and the variable that
// names the registry.
func readSettings(getenv func(string) string) (settings, error) {
	s := settings{}
	files := []string{"/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"}
	if home := getenv("HOME"); home != "" {
		files = append(files, filepath.Join(home, ".npmrc"))
	}
	for _, variable := range []string{"NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_USERCONFIG"} {
		if file := getenv(variable); file != "" {
			files = append(files, file)
		}
	}
	for _, file := range files {
		if err := s.read(file, getenv); err != nil {
			return nil, fmt.Errorf("settings of npm: %w", err)
		}
	}
	for _, variable := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if registry := getenv(variable); registry != "" {
			s["registry"] = registry
		}
	}
	return s, nil
}

func (s settings) read(path string, getenv func(string) string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(io.LimitReader(f, maxSettings))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		key, value, ok := strings.Cut(line, "=")
		if !ok || line[0] == '#' || line[0] == ';' {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		s[strings.TrimSpace(key)] = os.Expand(value, getenv)
	}
	return lines.Err()
}

// registry returns the address that has a package.
func (s settings) registry(name string) (*url.URL, error) {
	const hint = "install npm, or set NPM_CONFIG_REGISTRY to the address of a registry"
	text := s["registry"]
	if scope, _, ok := strings.Cut(name, "/"); ok && s[scope+":registry"] != "" {
		text = s[scope+":registry"]
	}
	if text == "" {
		return nil, errhint.With(errors.New("npm is not installed, and no setting names a registry"), hint)
	}
	u, err := url.Parse(strings.TrimSuffix(text, "/") + "/")
	if err != nil || u.Host == "" || u.User != nil {
		return nil, errhint.With(errors.New("the registry of npm's settings is not an address without a password"), hint)
	}
	return u, checkSafe(u)
}

// checkSafe wants TLS, but for this machine itself.
func checkSafe(u *url.URL) error {
	if host := u.Hostname(); u.Scheme == "https" || u.Scheme == "http" && (host == "127.0.0.1" || host == "::1" || host == "localhost") {
		return nil
	}
	return fmt.Errorf("the registry at %s is not spoken to with TLS", u.Host)
}

// token returns the credential for an address: that of the longest beginning of it.
func (s settings) token(u *url.URL) (token string) {
	best := 0
	for key, value := range s {
		place, ok := strings.CutSuffix(key, ":_authToken")
		if ok && len(place) > best && strings.HasPrefix("//"+u.Host+u.EscapedPath(), strings.TrimSuffix(place, "/")+"/") {
			token, best = value, len(place)
		}
	}
	return token
}
