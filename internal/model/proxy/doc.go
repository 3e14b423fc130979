// Package proxy is the proxy between sandboxes and models. An agent talks to
// http://localhost:8080/v1; the host adds the key, decides what may be asked,
// streams the answer, counts, caps and records.
//
// A request passes through, in this order: its head is read strictly (package
// h1); its method and path are looked up in an exact table; [Authenticate] finds the
// caller by the grant of its connection or by a minted token, never by what the
// request says; its body is read whole, within bounds, and
// judged in one pass (package ask); the worst that it can cost is reserved
// (package usage); it goes to the upstream with headers that are all ours; the
// answer comes back event by event, counted on its way (packages sse and
// dialect); what it did cost is settled, and one record is written (package
// audit). Nothing goes upstream before everything was allowed.
//
// Bodies and events are never decoded and encoded again: what the agent sent and
// what the model said pass byte for byte, but for what must be added or hidden.
//
// Requests to upstreams are made with net/http's client on the dialer of package
// outbound, in HTTP/2 where it is offered. One goroutine serves a connection, both
// ways; while it waits for the upstream, a timer (watch) looks every so often
// whether the caller is still there, whether its right has ended and whether the
// upstream is late.
package proxy
