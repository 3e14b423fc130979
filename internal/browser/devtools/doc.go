// Package devtools speaks the Chrome DevTools Protocol with a browser in a sandbox.
// The browser is hostile input: the size of messages, the number and the time of pending
// calls and the events of a subscription are bounded, and an answer without a pending
// call is dropped.
package devtools
