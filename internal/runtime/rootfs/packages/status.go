package packages

import (
	"bufio"
	"os"
	"strings"
)

// The database of dpkg.
const (
	statusFile = "var/lib/dpkg/status"
	infoDir    = "var/lib/dpkg/info"
)

// maxLine bounds a line of the database.
const maxLine = 1 << 20

// entry is an installed package.
type entry struct {
	name, arch string
	essential  bool
	installed  bool
	needs      []string // names of packages, or of what packages provide
	provides   []string
}

// readStatus returns the packages that are installed, by their names and by the names
// of what they provide.
func readStatus(path string) (map[string]*entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]*entry{}
	var list []*entry
	current := &entry{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if lines.Text() == "" {
			list, current = append(list, current), &entry{}
			continue
		}
		current.field(lines.Text())
	}
	for _, p := range append(list, current) {
		if p.installed && isName(p.name) && all[p.name] == nil {
			all[p.name] = p
		}
	}
	for _, p := range list {
		for _, name := range p.provides {
			if p.installed && all[name] == nil {
				all[name] = p
			}
		}
	}
	return all, lines.Err()
}

// field takes one line of a package's description.
func (p *entry) field(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch name {
	case "Package":
		p.name = value
	case "Architecture":
		p.arch = value
	case "Essential":
		p.essential = p.essential || value == "yes"
	case "Priority":
		p.essential = p.essential || value == "required"
	case "Status":
		p.installed = strings.HasSuffix(value, " installed")
	case "Depends", "Pre-Depends":
		p.needs = append(p.needs, names(value)...)
	case "Provides":
		p.provides = append(p.provides, names(value)...)
	}
}

// names are those of a list of packages: alternatives count as several, versions and
// architectures are left out.
func names(list string) (all []string) {
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' }) {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
		name, _, _ = strings.Cut(name, ":")
		if isName(name) {
			all = append(all, name)
		}
	}
	return all
}

// isName reports whether a name is one of dpkg's: it becomes part of a path.
func isName(name string) bool {
	return name != "" && name[0] != '.' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.") == ""
}
