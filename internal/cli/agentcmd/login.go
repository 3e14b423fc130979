package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// chooseLogin returns the providers that the program's models are asked of: those of
// the configuration, or the one that the environment or the stored secrets have a key
// for. A person at a terminal is asked for a key once. Nil is for a program without
// models.
func (s *start) chooseLogin(ctx context.Context) (*config.LLM, error) {
	if len(s.preset.Login) == 0 {
		return nil, nil
	}
	llm, err := s.app.Config.LLM()
	if err != nil {
		return nil, err
	}
	if !llm.FromFile && (!llm.Default || s.Getenv(config.DefaultLLMKey) == "") {
		login, key, err := s.findKey(ctx)
		if err != nil {
			return nil, err
		}
		if err := llm.UseKey(s.app.Config, login.Provider, key, login.Bearer, login.Beta); err != nil {
			return nil, err
		}
	}
	return &llm, s.chooseModel(&llm)
}

// findKey finds the first login of the preset that there is a secret for, in the
// environment before the stored ones, or asks for one.
func (s *start) findKey(ctx context.Context) (*preset.Login, config.LLMKey, error) {
	var stored *preset.Login
	var storedKey config.LLMKey
	for i := range s.preset.Login {
		login := &s.preset.Login[i]
		key, ok := s.app.Config.Key(login.Secret)
		switch {
		case ok && key.Env != "":
			return login, key, nil
		case ok && stored == nil:
			stored, storedKey = login, key
		}
	}
	if stored != nil {
		return stored, storedKey, nil
	}
	return s.askForKey(ctx)
}

// askForKey asks a person for a key or token, and stores it.
func (s *start) askForKey(ctx context.Context) (*preset.Login, config.LLMKey, error) {
	if s.hasForeignLogin() {
		s.Notice(s.preset.ForeignLogin.Text)
	}
	keys, ok := s.In.(*os.File)
	if !ok || !s.hasTerminal() {
		return nil, config.LLMKey{}, s.noKey()
	}
	fmt.Fprintf(s.Err, "%s needs one of these to ask its models. It is stored on this computer, and never enters the sandbox:\n", s.preset.Title)
	for _, l := range s.preset.Login {
		fmt.Fprintf(s.Err, "  %s (%s…): %s\n", l.Title, l.Prefix, l.How)
	}
	fmt.Fprint(s.Err, "paste it (it is not shown): ")
	text, err := awaitInput(ctx, keys, func() ([]byte, error) { return term.ReadPassword(int(keys.Fd())) })
	fmt.Fprintln(s.Err)
	if err != nil {
		return nil, config.LLMKey{}, fmt.Errorf("read the key: %w", err)
	}
	login, err := s.loginOf(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, config.LLMKey{}, err
	}
	if err := secretstore.Keep(filepath.Join(s.app.Paths.AtollState, secretstore.Dir), login.Secret, strings.TrimSpace(string(text))); err != nil {
		return nil, config.LLMKey{}, fmt.Errorf("store the key: %w", err)
	}
	key, _ := s.app.Config.Key(login.Secret)
	return login, key, nil
}

// maxKey bounds a key that is typed in.
const maxKey = 4096

// loginOf tells by its beginning what a key is for.
func (s *start) loginOf(key string) (*preset.Login, error) {
	plain := func(c rune) bool { return c > ' ' && c <= '~' }
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return !plain(c) }) {
		return nil, errors.New("that is no key: it is empty, too long, or not of plain characters")
	}
	at := slices.IndexFunc(s.preset.Login, func(l preset.Login) bool { return strings.HasPrefix(key, l.Prefix) })
	if at < 0 {
		return nil, errhint.With(errors.New("that does not look like any of these keys"), "put it into the environment instead, as "+s.preset.Login[0].Secret)
	}
	return &s.preset.Login[at], nil
}

// noKey is the error without a key and without a person to ask.
func (s *start) noKey() error {
	var ways []string
	for _, l := range s.preset.Login {
		ways = append(ways, fmt.Sprintf("%s (%s: %s)", l.Secret, l.Title, l.How))
	}
	return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("%s has no key to ask its models with", s.preset.Title),
		"put one into the environment: "+strings.Join(ways, ", or ")+"; or start it at a terminal, which asks for one"))
}

// hasForeignLogin reports whether the person is logged in with the program itself, in
// a way that cannot be used.
func (s *start) hasForeignLogin() bool {
	if s.preset.ForeignLogin == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(s.app.Paths.Home, s.preset.ForeignLogin.File))
	return err == nil
}
