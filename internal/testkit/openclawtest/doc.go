// Package openclawtest runs the unmodified OpenClaw from npm, as
// scripts/openclaw.sh installed it, against a scripted model and any program
// that is called docker: for tests and measurements.
package openclawtest
