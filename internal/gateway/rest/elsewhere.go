package rest

import (
	"net/http"
	"reflect"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// mcpQuery is the query of a request of the Model Context Protocol.
type mcpQuery struct {
	Agent string `query:"agent" doc:"Agent whose sandbox a new session works in; the default one if it is left out."`
}

// terminalQuery is the query of a terminal's WebSocket.
type terminalQuery struct {
	Offset int64 `query:"offset" min:"0" doc:"Bytes of the screen that the client has seen: what was written after them comes first."`
}

// liveMessages are the messages of the WebSocket of what happens now.
var liveMessages = []reflect.Type{reflect.TypeFor[api.LiveRequest](), reflect.TypeFor[api.LiveMessage](), reflect.TypeFor[api.SandboxUsage](), reflect.TypeFor[api.LiveHealth](), reflect.TypeFor[api.LiveCounts]()}

// terminalMessages are the text messages of a terminal.
var terminalMessages = []reflect.Type{reflect.TypeFor[api.TerminalControl](), reflect.TypeFor[api.TerminalEvent]()}

// mcpEvents are the messages that a client of the Model Context Protocol follows.
var mcpEvents = &eventStream{description: "Events; the data of each is a message of JSON-RPC."}

// elsewhere are operations of the document that other parts of the gateway serve:
// terminals, and the Model Context Protocol's transport, streamable HTTP.
var elsewhere = []route{
	{http.MethodGet, "/api/v1/sandboxes/{id}/processes/{process}/terminal", "openTerminal", access.Run, "Use the terminal of a process over a WebSocket: binary messages are the screen and the keys, text messages are JSON", shape{query: reflect.TypeFor[terminalQuery](), messages: terminalMessages}},
	{http.MethodGet, "/api/v1/live", "followLive", access.Read, "Follow what happens now over a WebSocket: text messages, a LiveRequest each to the gateway, a LiveMessage each from it", shape{messages: liveMessages}},
	{http.MethodPost, "/mcp", "sendMCPMessage", access.Run, "Send a message of the Model Context Protocol (streamable HTTP): the first is initialize, and the header Mcp-Session-Id of its answer is sent with every other", shape{query: reflect.TypeFor[mcpQuery](), rawBody: "application/json", raw: "application/json", events: mcpEvents}},
	{http.MethodGet, "/mcp", "followMCPMessages", access.Run, "Follow the messages of a session of the Model Context Protocol, which the header Mcp-Session-Id names", shape{events: mcpEvents}},
	{http.MethodDelete, "/mcp", "endMCPSession", access.Run, "End a session of the Model Context Protocol, which the header Mcp-Session-Id names", shape{}},
}
