package api

import "time"

// Browser is a browser in a sandbox of its own.
type Browser struct {
	Name       string `json:"name" doc:"Of its sandbox."`
	SessionKey string `json:"sessionKey" doc:"Its scope key: which sessions share it."`
	AgentID    string `json:"agentId"`
	Account    string `json:"account,omitempty"`
	Running    bool   `json:"running" doc:"Its sandbox runs."`
	Open       bool   `json:"open" doc:"The browser itself runs."`
	CDP        bool   `json:"cdp" doc:"Programs may attach to it: sandbox.browser.cdp is operator."`
	View       bool   `json:"view" doc:"People may watch it: sandbox.browser.view is not off."`
	Control    bool   `json:"control" doc:"People may take it over: sandbox.browser.control is not off."`
	Window     bool   `json:"window,omitzero" doc:"It has a window, which is watched by VNC."`
	Programs   int    `json:"programs" doc:"That are attached through this gateway."`
	Viewers    int    `json:"viewers" doc:"That watch it through this gateway."`
	Person     bool   `json:"person,omitzero" doc:"A person has taken it over; the agent waits."`
	CDPPort    int    `json:"cdpPort,omitzero" doc:"Port of this machine by which programs are attached."`
	NoVNCPort  int    `json:"noVncPort,omitzero" doc:"Port of this machine by which its window is watched."`
}

// Browsers is a list of browsers.
type Browsers struct {
	Browsers []Browser `json:"browsers"`
}

// BrowserQuery filters browsers.
type BrowserQuery struct {
	Account string `query:"account" doc:"Only those of this billing account."`
}

// StartBrowser names the session whose browser is started.
type StartBrowser struct {
	Agent   string `json:"agent,omitempty" doc:"The default one if not given."`
	Session string `json:"session,omitempty" doc:"The agent's main session if not given."`
	Account string `json:"account,omitempty" doc:"Billing account; that of the token if it is bound to one."`
}

// BrowserEndpoint is a WebSocket that one program may open once.
type BrowserEndpoint struct {
	WSEndpoint string    `json:"wsEndpoint" doc:"With a ticket in it, for one connection."`
	Expires    time.Time `json:"expires" doc:"Until when the connection has to be opened."`
	Page       string    `json:"page,omitempty" doc:"The page that shows it, with the same ticket; of views, where the gateway has pages."`
}

// BrowserTab is a tab of a browser.
type BrowserTab struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

// BrowserTabs is a list of tabs.
type BrowserTabs struct {
	Tabs []BrowserTab `json:"tabs"`
}

// BrowserVersion is what clients of the DevTools protocol ask for first.
type BrowserVersion struct {
	Browser         string `json:"Browser"`
	ProtocolVersion string `json:"Protocol-Version"`
	UserAgent       string `json:"User-Agent,omitempty"`
	Socket          string `json:"webSocketDebuggerUrl" doc:"With a ticket in it, for one connection within a minute."`
}

// ViewBrowser says how a browser is watched.
type ViewBrowser struct {
	Tab     string `json:"tab,omitempty" doc:"The target id of the tab that is shown; the first if not given."`
	Control bool   `json:"control,omitempty" doc:"The viewer may take the browser over; this needs the scope operator."`
}

// What viewers send and receive as text messages. Pictures are binary messages, JPEG,
// each after the event that describes it.
const (
	ViewFrame    = "frame"    // the next message is a picture
	ViewTaken    = "taken"    // this viewer drives
	ViewReleased = "released" // it does not any more
	ViewRefused  = "refused"  // what was asked for is refused
	ViewState    = "state"    // who drives, and what is shown
)

// Who drives a browser.
const (
	DriverAgent  = "agent"
	DriverYou    = "you"    // this viewer
	DriverPerson = "person" // another one
)

// ViewEvent is what a viewer is told.
type ViewEvent struct {
	Type    string  `json:"type" enum:"frame|taken|released|refused|state"`
	Width   float64 `json:"width,omitzero" doc:"Of the page, in its own pixels."`
	Height  float64 `json:"height,omitzero"`
	Detail  string  `json:"detail,omitempty"`
	Driver  string  `json:"driver,omitempty" enum:"agent|you|person"`
	Control bool    `json:"control,omitzero" doc:"This viewer may take the browser over."`
	URL     string  `json:"url,omitempty" doc:"Of the page that is shown."`
	Title   string  `json:"title,omitempty"`
}

// WatchWindow says how the window of a browser is watched.
type WatchWindow struct {
	Control bool `json:"control,omitempty" doc:"The viewer may take the browser over; this needs the scope operator."`
}

// ViewInput is what a viewer asks for. Coordinates are those of the page.
type ViewInput struct {
	Type   string  `json:"type" enum:"take|release|mouse|wheel|key|text"`
	Event  string  `json:"event,omitempty" enum:"down|up|move"`
	X      float64 `json:"x,omitzero"`
	Y      float64 `json:"y,omitzero"`
	DX     float64 `json:"dx,omitzero"`
	DY     float64 `json:"dy,omitzero"`
	Button string  `json:"button,omitempty" enum:"left|middle|right"`
	Clicks int     `json:"clicks,omitzero"`
	Key    string  `json:"key,omitempty"`
	Code   string  `json:"code,omitempty"`
	Text   string  `json:"text,omitempty"`
}
