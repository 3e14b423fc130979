// Atoll runs AI agents, and every tool they call, inside hardened sandboxes.
package main
