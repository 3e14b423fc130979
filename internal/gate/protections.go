package gate

import (
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy"
)

// Protections are the paths of a person's directory that an agent does not change
// alone. The person is there and may say yes, except for the files that decide over
// the sandbox itself.
func Protections() []contentpolicy.Protection {
	var own, other []contentpolicy.Protection
	for _, p := range contentpolicy.Protections() {
		if strings.HasSuffix(p.Pattern, "atoll.json5") || strings.HasSuffix(p.Pattern, "openclaw.json") {
			own = append(own, p)
			continue
		}
		p.Verdict = contentpolicy.Approval
		other = append(other, p)
	}
	return append(append(own, contentpolicy.MachineProtections()...), other...)
}

// maxGitConfig is how much of the base's git configuration is read.
const maxGitConfig = 1 << 20

// hookProtections protect the directory that the base's git configuration names as
// that of its hooks.
func (b *baseDir) hookProtections() []contentpolicy.Protection {
	data, err := b.read(".git/config", maxGitConfig)
	if err != nil {
		return nil
	}
	var list []contentpolicy.Protection
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "hooksPath") {
			continue
		}
		dir := strings.Trim(strings.TrimSpace(value), `"/`)
		dir = strings.TrimPrefix(dir, "./")
		list = append(list, contentpolicy.Protection{Pattern: dir + "/**", Verdict: contentpolicy.Approval, Why: "it is executed by git on this machine"})
	}
	return list
}
