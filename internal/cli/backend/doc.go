// Package backend carries out verbs about runs, sandboxes and approvals: through the gateway
// that is running on this state directory, or in this process if there is none.
package backend
