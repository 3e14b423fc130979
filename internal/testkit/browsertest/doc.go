// Package browsertest tests the ways into browsers of sandboxes through a gateway, with a
// real Chromium: programs of others that attach to it, and people who watch it.
package browsertest
