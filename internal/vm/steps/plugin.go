package steps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

const (
	pluginFile = "step.json5"
	maxPlugin  = 64 << 10 // of step.json5
)

// plugin is step.json5 of a directory of plug-ins.
type plugin struct {
	Name  string   `json:"name"`
	Needs []string `json:"needs"`
	Check string   `json:"check"` // scripts beside the file
	Apply string   `json:"apply"`
}

// Plugin reads the plug-in of a name from a directory of plug-ins of this machine, which
// is mounted inside.
func Plugin(dir, name string) (Step, error) {
	hint := "a plug-in is a directory with " + pluginFile + ": {name, needs, check: \"check.sh\", apply: \"apply.sh\"}"
	p, err := readPlugin(filepath.Join(dir, name, pluginFile))
	if err != nil {
		return Step{}, errhint.With(fmt.Errorf("plug-in %s: %w", name, err), hint)
	}
	if p.Name != name {
		return Step{}, errhint.With(fmt.Errorf("plug-in %s: its name is %q", name, p.Name), hint)
	}
	for _, script := range []string{p.Check, p.Apply} {
		if err := checkScript(filepath.Join(dir, name), script); err != nil {
			return Step{}, errhint.With(fmt.Errorf("plug-in %s: %w", name, err), hint)
		}
	}
	inside := profile.ProvisionPoint + "/" + name
	return Step{Name: name, Needs: p.Needs, Actions: []Action{{Check: "cd " + inside + " && sh ./" + p.Check, Apply: "cd " + inside + " && sh ./" + p.Apply}}}, nil
}

// readPlugin reads a file strictly: a key that is not known is refused.
func readPlugin(path string) (p plugin, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPlugin+1))
	if err != nil {
		return p, err
	}
	if len(text) > maxPlugin {
		return p, fmt.Errorf("%s is larger than %d bytes", path, maxPlugin)
	}
	doc, err := json5.Parse(text)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(doc.JSON, &p, json.RejectUnknownMembers(true))
}

// checkScript refuses what is no plain name of a file in the directory.
func checkScript(dir, name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%q is no name of a script", name)
	}
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New(name + " is no file")
	}
	return nil
}

// pluginOrder is the order of the three plug-ins that have keys of their own.
var pluginOrder = []string{"cadence", "buildlog", "qortex"}

func sortPlugins(list []Step) {
	slices.SortStableFunc(list, func(a, b Step) int { return slices.Index(pluginOrder, a.Name) - slices.Index(pluginOrder, b.Name) })
}
