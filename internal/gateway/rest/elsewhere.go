package rest

import (
	"net/http"
	"reflect"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// mcpQuery is the query of a request of the Model Context Protocol.
type mcpQuery struct {
	Agent string `query:"agent" doc:"Agent whose sandbox a new session works in; the default one if it is left out."`
}

// mcpEvents are the messages that a client of the Model Context Protocol follows.
var mcpEvents = &eventStream{description: "Events; the data of each is a message of JSON-RPC."}

// elsewhere are operations of the document that other parts of the gateway serve: those of
// the Model Context Protocol's transport, streamable HTTP.
var elsewhere = []route{
	{http.MethodPost, "/mcp", "sendMCPMessage", access.Run, "Send a message of the Model Context Protocol (streamable HTTP): the first is initialize, and the header Mcp-Session-Id of its answer is sent with every other", shape{query: reflect.TypeFor[mcpQuery](), rawBody: "application/json", raw: "application/json", events: mcpEvents}},
	{http.MethodGet, "/mcp", "followMCPMessages", access.Run, "Follow the messages of a session of the Model Context Protocol, which the header Mcp-Session-Id names", shape{events: mcpEvents}},
	{http.MethodDelete, "/mcp", "endMCPSession", access.Run, "End a session of the Model Context Protocol, which the header Mcp-Session-Id names", shape{}},
}
