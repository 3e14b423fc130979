// Package origlimits remembers what the process was given before the Go runtime
// changed it: the limit of open files, whose soft value package syscall raises
// when it is initialised. Processes that the guest starts must not see that.
//
// It works because packages are initialised in the order of their paths as far
// as imports allow, and this one imports nothing.
package origlimits

// OpenFiles is the limit of open files, soft and hard; zero if unknown.
var OpenFiles = openFiles()

func openFiles() (limit [2]uint64) {
	getNOFILE(&limit)
	return limit
}

// getNOFILE asks the kernel. It is written in assembly, because package syscall
// would be an import.
//
//go:noescape
func getNOFILE(limit *[2]uint64)
