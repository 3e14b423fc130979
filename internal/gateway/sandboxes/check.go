package sandboxes

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// The bounds of a request.
const (
	MaxTimeoutSeconds = 30 * 24 * 3600
	maxMetadata       = 64
	maxMetadataName   = 128
	maxMetadataValue  = 1024
	maxEnv            = 256
	maxEnvBytes       = 64 << 10
	maxImage          = 256
)

// check returns what is wrong with a request by itself.
func check(q *api.CreateSandbox) error {
	switch {
	case len(q.Image) > maxImage || strings.ContainsFunc(q.Image, isControl) || strings.HasPrefix(q.Image, "-"):
		return &InvalidError{"/image", "must be the name of an image"}
	case q.Template != "" && !templateForm.MatchString(q.Template):
		return &InvalidError{"/template", templateRule}
	case q.Template != "" && q.Image != "":
		return &InvalidError{"/image", "excludes template, which has an image"}
	case q.Template != "" && q.Workdir != "":
		return &InvalidError{"/workdir", "excludes template, which has one"}
	case len(q.Workdir) > maxWorkdir || q.Workdir != "" && (path.Clean(q.Workdir) != q.Workdir || !path.IsAbs(q.Workdir) || strings.ContainsFunc(q.Workdir, isControl)):
		return &InvalidError{"/workdir", "must be an absolute path"}
	case q.TimeoutSeconds < 0 || q.TimeoutSeconds > MaxTimeoutSeconds:
		return &InvalidError{"/timeoutSeconds", fmt.Sprintf("must be from 1 to %d", MaxTimeoutSeconds)}
	case q.OnDeadline != "" && q.OnDeadline != OnDeadlineRemove && q.OnDeadline != OnDeadlineStop:
		return &InvalidError{"/onDeadline", "must be remove or stop"}
	}
	for _, err := range []error{checkMetadata(q.Metadata), checkEnv(q.Env), checkLimits(q.Limits), checkRules(q.Egress), checkWorkspace(q)} {
		if err != nil {
			return err
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }

// checkTimeout returns an error for a time from now to a deadline that is out of
// bounds.
func checkTimeout(seconds int64) error {
	if seconds < 1 || seconds > MaxTimeoutSeconds {
		return &InvalidError{"/timeoutSeconds", fmt.Sprintf("must be from 1 to %d", MaxTimeoutSeconds)}
	}
	return nil
}

func checkMetadata(metadata map[string]string) error {
	if len(metadata) > maxMetadata {
		return &InvalidError{"/metadata", fmt.Sprintf("has more than %d members", maxMetadata)}
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if name == "" || len(name) > maxMetadataName || len(metadata[name]) > maxMetadataValue {
			return &InvalidError{"/metadata", fmt.Sprintf("names have 1 to %d bytes and values at most %d", maxMetadataName, maxMetadataValue)}
		}
	}
	return nil
}

func checkEnv(env map[string]string) error {
	total := 0
	for name, value := range env {
		total += len(name) + len(value)
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(value, 0) >= 0 {
			return &InvalidError{"/env", "a name is empty or contains =, or there is a zero byte"}
		}
	}
	if len(env) > maxEnv || total > maxEnvBytes {
		return &InvalidError{"/env", fmt.Sprintf("has more than %d variables or %d bytes", maxEnv, maxEnvBytes)}
	}
	return nil
}

func checkLimits(l *api.SandboxLimits) error {
	if l == nil {
		return nil
	}
	for pointer, n := range map[string]int64{"/limits/memoryBytes": l.MemoryBytes, "/limits/processes": l.Processes, "/limits/workspaceBytes": l.WorkspaceBytes, "/limits/workspaceFiles": l.WorkspaceFiles} {
		if n < 0 {
			return &InvalidError{pointer, "must be at least 1"}
		}
	}
	if l.CPUs < 0 || math.IsNaN(l.CPUs) || l.CPUs > maxCPUs {
		return &InvalidError{"/limits/cpus", fmt.Sprintf("must be above 0 and at most %d", maxCPUs)}
	}
	return nil
}

// maxCPUs is a number of processors that no machine has.
const maxCPUs = 4096

// checkPlan returns what policy refuses of a request, with variables that may not
// enter a sandbox among it.
func checkPlan(p *plan.Plan, q *api.CreateSandbox) error {
	for _, blocked := range p.Env.Blocked {
		if _, asked := q.Env[blocked.Name]; asked {
			return &InvalidError{"/env/" + blocked.Name, blocked.Reason}
		}
	}
	return p.Refusal()
}
