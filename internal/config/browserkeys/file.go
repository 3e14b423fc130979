package browserkeys

import "github.com/atoll-run/atoll/internal/config/amount"

// File is sandbox.browser as a file has it.
type File struct {
	Enabled            *bool          `json:"enabled" doc:"The sandbox has a browser."`
	Image              *string        `json:"image" check:"image" doc:"Image of the browser sandbox."`
	ContainerPrefix    *string        `json:"containerPrefix" check:"prefix" doc:"What names of browser containers begin with."`
	Network            *string        `json:"network" check:"browserNetwork" doc:"OpenClaw's network of the browser. No browser gets one: none is read as egress mode off, any other as public, unless egress says what is reached."`
	CDPPort            *int           `json:"cdpPort" min:"1" max:"65535" doc:"Port of the browser's control protocol inside."`
	CDPSourceRange     *string        `json:"cdpSourceRange" check:"range" doc:"Addresses (CIDR) whose programs may attach to the browser through the gateway."`
	VNCPort            *int           `json:"vncPort" min:"1" max:"65535" doc:"Port of VNC inside."`
	NoVNCPort          *int           `json:"noVncPort" min:"1" max:"65535" doc:"Port of noVNC inside, for OpenClaw: ours is served by the gateway."`
	Headless           *bool          `json:"headless" doc:"No window and no VNC."`
	NoVNCEnabled       *bool          `json:"noVncEnabled" doc:"A window can be watched in a browser."`
	EnableNoVNC        *bool          `json:"enableNoVnc" note:"enableNoVnc" doc:"Old name of noVncEnabled."`
	AllowHostControl   *bool          `json:"allowHostControl" doc:"OpenClaw's use of the host's own browser: only false."`
	AutoStart          *AutoStart     `json:"autoStart" enum:"lazy" doc:"Start the browser with the sandbox (true), when it is first used (lazy), or only when a person does (false)."`
	AutoStartTimeoutMs *int           `json:"autoStartTimeoutMs" min:"1" max:"2147483647" doc:"How long a start may take; half a minute unless written."`
	Binds              []string       `json:"binds" check:"bind" doc:"Binds of the browser sandbox. docker.binds are not its own; an empty list means none."`
	Engine             *Engine        `json:"engine" enum:"auto|shell|chromium" doc:"Program: chromium-headless-shell (shell), chromium, or what headless asks for (auto)."`
	Memory             *amount.Size   `json:"memory" check:"size" doc:"Most memory of the browser sandbox."`
	PidsLimit          *int64         `json:"pidsLimit" min:"64" max:"4194304" doc:"Most processes and threads of the browser sandbox."`
	ShmSize            *amount.Size   `json:"shmSize" check:"size" doc:"Size of its /dev/shm."`
	Tabs               *int           `json:"tabs" min:"1" max:"200" doc:"Most tabs at once."`
	Viewport           *string        `json:"viewport" check:"viewport" doc:"Size of a page in pixels: WIDTHxHEIGHT."`
	Profile            *Profile       `json:"profile" enum:"ephemeral|session|agent" doc:"Cookies and storage: forgotten with the browser (ephemeral), kept for the session, or kept for the agent, whose sessions share one browser then."`
	Downloads          *DownloadsFile `json:"downloads" doc:"Files that pages send."`
	Evaluate           *bool          `json:"evaluate" doc:"The agent may run JavaScript in pages."`
	Uploads            *bool          `json:"uploads" doc:"The agent may give files of its workspace to pages."`
	View               *View          `json:"view" enum:"auto|off" doc:"People may watch."`
	Control            *Control       `json:"control" enum:"ask|off" doc:"People may take over: when they ask for it, or never."`
	CDP                *CDP           `json:"cdp" enum:"off|operator" doc:"Other programs may attach through the gateway: none, or those with the scope operator."`
	IdleMinutes        *int           `json:"idleMinutes" min:"0" max:"100000" doc:"A browser that was not used for so long is stopped; 0 is never."`

	NoSandbox          *bool `json:"dangerouslyNoSandbox" doc:"Run Chromium without its own sandbox where the machine bars user namespaces."`
	IgnoreCertificates *bool `json:"dangerouslyIgnoreCertificates" doc:"Pages may have certificates that nobody trusts."`
}

// DownloadsFile is sandbox.browser.downloads as a file has it.
type DownloadsFile struct {
	MaxBytes *amount.Size `json:"maxBytes" check:"amount" doc:"Most bytes of one file."`
	MaxFiles *int         `json:"maxFiles" min:"0" max:"10000" doc:"Most files of one browser; 0 is none."`
	Into     *string      `json:"into" check:"workspacePath" doc:"Directory of the workspace that they are put into."`
}
