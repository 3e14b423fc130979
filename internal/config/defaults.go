package config

import "github.com/atoll-run/atoll/internal/config/browserkeys"

// What an agent gets that the file says nothing about.

// What a private copy of a workspace may hold unless the file says otherwise.
const (
	CopySize  = 16 << 30 // bytes
	CopyFiles = 1_000_000
)

// builtin returns the built-in defaults. WorkspaceRoot depends on the state
// directory and is filled in by the merge.
func builtin() Sandbox {
	return Sandbox{
		Mode:                   ModeOff,
		Scope:                  ScopeAgent,
		Backend:                "auto",
		WorkspaceAccess:        AccessNone,
		SessionToolsVisibility: "spawned",
		Egress:                 builtinEgress(),
		Docker: Docker{
			Image:           "openclaw-sandbox:bookworm-slim",
			ContainerPrefix: "openclaw-sbx-",
			Workdir:         "/workspace",
			ReadOnlyRoot:    true,
			Tmpfs:           []string{"/tmp", "/var/tmp", "/run"},
			Network:         "none",
			CapDrop:         []string{"ALL"},
			Env:             map[string]string{"LANG": "C.UTF-8"},
		},
		Browser: Browser{Browser: browserkeys.Default()},
		Prune:   Prune{IdleHours: 24, MaxAgeDays: 7},
	}
}

// DefaultGatewayPort is the port of a gateway that none was configured for.
const DefaultGatewayPort = 18789
