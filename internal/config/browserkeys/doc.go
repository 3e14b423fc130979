// Package browserkeys has the keys of sandbox.browser: their form in the file, their
// defaults, and how an agent's are merged with those of all agents. The key egress, whose
// form is that of sandbox.egress, is added by package config.
package browserkeys
