// Package steps sets a virtual machine up. Each step is a list of actions, an action has
// a check and what is done if it fails: a second run changes nothing.
package steps
