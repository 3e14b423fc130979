// Package envelope is the JSON object that an agent's program prints when it is
// done: writing ours, and reading that of others, which is hostile text.
package envelope
