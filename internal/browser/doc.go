// Package browser runs Chromium in a sandbox of its own and works on its pages. Chromium
// keeps its own sandbox inside Atoll's; it has no network but the egress of its grant,
// and its control port is on the sandbox's own loopback interface, reached over the wire.
package browser
