package browserkeys

// Engine is the program that a browser is.
type Engine string

// The values of engine.
const (
	EngineAuto     Engine = "auto"
	EngineShell    Engine = "shell"
	EngineChromium Engine = "chromium"
)

// Profile says how long cookies and storage are kept.
type Profile string

// The values of profile.
const (
	ProfileEphemeral Profile = "ephemeral"
	ProfileSession   Profile = "session"
	ProfileAgent     Profile = "agent"
)

// View says whether people may watch.
type View string

// The values of view.
const (
	ViewAuto View = "auto"
	ViewOff  View = "off"
)

// Control says whether people may take over.
type Control string

// The values of control.
const (
	ControlAsk Control = "ask"
	ControlOff Control = "off"
)

// CDP says whether other programs may attach.
type CDP string

// The values of cdp.
const (
	CDPOff      CDP = "off"
	CDPOperator CDP = "operator"
)

// Browser is sandbox.browser of one agent, but for egress.
type Browser struct {
	Enabled            bool      `json:"enabled"`
	Image              string    `json:"image"`
	ContainerPrefix    string    `json:"containerPrefix"`
	Network            string    `json:"network"`
	CDPPort            int       `json:"cdpPort"`
	CDPSourceRange     string    `json:"cdpSourceRange,omitempty"`
	VNCPort            int       `json:"vncPort"`
	NoVNCPort          int       `json:"noVncPort"`
	Headless           bool      `json:"headless"`
	NoVNCEnabled       bool      `json:"noVncEnabled"`
	AllowHostControl   bool      `json:"allowHostControl"` // always false
	AutoStart          AutoStart `json:"autoStart"`
	AutoStartTimeoutMs int       `json:"autoStartTimeoutMs"`
	Binds              []string  `json:"binds,omitzero"`
	Engine             Engine    `json:"engine"`
	Memory             int64     `json:"memory"` // bytes
	PidsLimit          int64     `json:"pidsLimit"`
	ShmSize            int64     `json:"shmSize"` // bytes
	Tabs               int       `json:"tabs"`
	Viewport           string    `json:"viewport"` // WIDTHxHEIGHT
	Profile            Profile   `json:"profile"`
	Downloads          Downloads `json:"downloads"`
	Evaluate           bool      `json:"evaluate"`
	Uploads            bool      `json:"uploads"`
	View               View      `json:"view"`
	Control            Control   `json:"control"`
	CDP                CDP       `json:"cdp"`
	IdleMinutes        int       `json:"idleMinutes"`
	NoSandbox          bool      `json:"dangerouslyNoSandbox,omitzero"`
	IgnoreCertificates bool      `json:"dangerouslyIgnoreCertificates,omitzero"`
}

// Downloads is sandbox.browser.downloads of one agent.
type Downloads struct {
	MaxBytes int64  `json:"maxBytes"` // of one file
	MaxFiles int    `json:"maxFiles"` // of one browser
	Into     string `json:"into"`     // relative to the workspace
}

// Default returns what a browser has that the file says nothing about.
func Default() Browser {
	return Browser{
		Image:              "openclaw-sandbox-browser:bookworm-slim",
		ContainerPrefix:    "openclaw-sbx-browser-",
		Network:            "openclaw-sandbox-browser",
		CDPPort:            9222,
		VNCPort:            5900,
		NoVNCPort:          6080,
		Headless:           true,
		NoVNCEnabled:       true,
		AutoStart:          AutoStartLazy,
		AutoStartTimeoutMs: 12000,
		Engine:             EngineAuto,
		Memory:             1 << 30,
		PidsLimit:          512,
		ShmSize:            256 << 20,
		Tabs:               20,
		Viewport:           "1280x800",
		Profile:            ProfileEphemeral,
		Downloads:          Downloads{MaxBytes: 64 << 20, MaxFiles: 50, Into: "media/inbound"},
		Uploads:            true,
		View:               ViewAuto,
		Control:            ControlAsk,
		CDP:                CDPOff,
		IdleMinutes:        30,
	}
}

// Shell reports whether the browser is chromium-headless-shell, which has no window.
func (b *Browser) Shell() bool {
	return b.Engine == EngineShell || b.Engine == EngineAuto && b.Headless
}

// Windowed reports whether the browser has a window.
func (b *Browser) Windowed() bool { return !b.Headless && b.Engine != EngineShell }

// Size returns the width and height of a page in pixels.
func (b *Browser) Size() (width, height int) {
	width, height, err := ParseViewport(b.Viewport)
	if err != nil { // the file was checked: it is what a caller set
		width, height, _ = ParseViewport(Default().Viewport)
	}
	return width, height
}
