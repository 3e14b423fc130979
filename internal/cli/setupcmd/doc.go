// Package setupcmd has the verbs that set an installation up: config, doctor and
// images.
package setupcmd
