// Package devtools speaks the Chrome DevTools Protocol with a browser in a sandbox.
// What comes from there is hostile: messages, calls that wait and events that nobody
// reads are bounded, and answers count only for calls that were made.
package devtools
