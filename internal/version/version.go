// Package version says which build this is.
package version

import (
	"runtime"
	"runtime/debug"
)

// number is the release, set by the release build with -ldflags -X.
var number = "0.1.0-dev"

// Info describes the running program.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current is the running program's.
func Current() Info {
	info := Info{Version: number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			info.Revision = s.Value
		}
	}
	return info
}
