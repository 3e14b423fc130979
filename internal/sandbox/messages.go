package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// RecreateCommand is the command that replaces the sandbox of spec.
func RecreateCommand(spec *Spec) string {
	switch spec.ScopeKey {
	case "shared":
		return "atoll sandbox recreate --all"
	case "agent:" + spec.AgentID:
		return "atoll sandbox recreate --agent " + spec.AgentID
	default:
		return "atoll sandbox recreate --session " + shellQuote(spec.ScopeKey)
	}
}

// shellQuote makes s one word for a POSIX shell.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:/+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func configChanged(spec *Spec, changes string) string {
	if changes != "" {
		changes = ": " + changes
	}
	return fmt.Sprintf("Sandbox config changed for %s (recently used)%s. Recreate to apply: %s", spec.Name, changes, RecreateCommand(spec))
}

// madeAnew tells the user of a sandbox that the one before ended, and why.
func madeAnew(spec *Spec, why string) string {
	return fmt.Sprintf("Sandbox %s was made anew: %s.", spec.Name, why)
}

// changeRefusal returns why a sandbox in use cannot be used with other settings.
func changeRefusal(spec *Spec, seen observation, changes string) error {
	if changes != "" {
		changes = " (" + changes + ")"
	}
	err := fmt.Errorf("its mounts are not the ones now configured%s, and it was used less than %d minutes ago: %w", changes, int(HotWindow.Minutes()), ErrBusy)
	switch {
	case spec.Exact && seen.unlimited == nil && !seen.detached:
		return errhint.With(fmt.Errorf("it was made with other settings than this command asks for%s, and it was used less than %d minutes ago: %w", changes, int(HotWindow.Minutes()), ErrBusy),
			"replace it: "+RecreateCommand(spec))
	case seen.unlimited != nil:
		err = fmt.Errorf("its limits are not in force any more (%w): %w", seen.unlimited, ErrBusy)
	case seen.detached:
		err = fmt.Errorf("a directory that it has mounted was removed or replaced on the host: %w", ErrBusy)
	}
	return errhint.With(err, "finish what runs in it, then: "+RecreateCommand(spec))
}

// mountsExchanged is a start that mounted something else than was checked.
func mountsExchanged(spec *Spec) error {
	return errhint.With(fmt.Errorf("a directory that it mounts was exchanged while it started: %w", ErrDenied),
		"find out who can replace that path; if it was you: "+RecreateCommand(spec))
}

func nameTaken(spec *Spec, owner string) error {
	return errhint.With(fmt.Errorf("the name belongs to the sandbox of %q, not of %q: %w", owner, spec.ScopeKey, ErrForeign),
		"use another session key, or another sandbox.docker.containerPrefix for this agent")
}

// Refusal returns why the machinery of spec cannot make it; nil if it can.
func (m *Manager) Refusal(ctx context.Context, spec *Spec) error {
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return err
	}
	if gaps := rt.Check(ctx, spec); len(gaps) > 0 {
		return gapError(gaps)
	}
	return nil
}

// gapError says everything that the machinery cannot enforce.
func gapError(gaps []Gap) error {
	var what []string
	for _, g := range gaps {
		what = append(what, g.Field+": "+g.Reason)
	}
	err := fmt.Errorf("%s: %w", strings.Join(what, "; "), ErrUnsupported)
	return errhint.With(err, remediesOf(gaps))
}

// remediesOf returns each remedy once, with the gaps that it is for.
func remediesOf(gaps []Gap) string {
	var remedies []string
	fields := map[string][]string{}
	for _, g := range gaps {
		if g.Remedy != "" && fields[g.Remedy] == nil {
			remedies = append(remedies, g.Remedy)
		}
		fields[g.Remedy] = append(fields[g.Remedy], g.Field)
	}
	if len(remedies) == 1 {
		return remedies[0]
	}
	for n, remedy := range remedies {
		remedies[n] = strings.Join(fields[remedy], ", ") + ": " + remedy
	}
	return strings.Join(remedies, "; ")
}
