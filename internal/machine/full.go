package machine

import "github.com/atoll-run/atoll/internal/wire"

// Full is the limit on the disk for which a command was ended, "" if it was not.
type Full string

// String says it in words.
func (f Full) String() string {
	switch wire.Full(f) {
	case wire.FullSize:
		return "the workspace holds more than it may"
	case wire.FullFiles:
		return "the workspace holds more files than it may"
	case wire.FullDisk:
		return "the disk that the workspace is on is nearly full"
	}
	return ""
}

// fullOf believes a guest only what there is a word for.
func fullOf(f wire.Full) Full {
	if Full(f).String() == "" {
		return ""
	}
	return Full(f)
}
