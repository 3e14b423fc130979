// Package dockerformat prints what docker's --format asks for: templates with docker's
// functions, tables, and docker's notation of sizes and times.
package dockerformat
