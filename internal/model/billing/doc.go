// Package billing compares the ledger with LiteLLM's spend logs, whose figures are
// the ones that count. Calls are joined by our own request
// id, which travels in the spend logs' metadata; LiteLLM's ids mean different
// things in different releases.
//
// LiteLLM writes its rows some time after the answer. A call that is younger
// than the grace is pending, not missing, and a receipt with pending calls says
// that it is provisional.
package billing
