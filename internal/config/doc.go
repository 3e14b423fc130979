// Package config turns the configuration file into settings that can be used:
// read, JSON5, dialect, strict decode, three-level merge, checks. It reports
// every problem at once, each with its field path and position.
//
// It reads one file and the environment it is given; it decides nothing about
// sessions, tools or paths (package policy does) and never touches the host
// paths that it names (package hostpath does).
package config
