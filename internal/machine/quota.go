package machine

import "github.com/atoll-run/atoll/internal/wire"

// QuotaLimit is the limit on the disk for which a command was ended, "" if it was not.
type QuotaLimit string

// String returns a sentence for people.
func (f QuotaLimit) String() string {
	switch wire.QuotaLimit(f) {
	case wire.QuotaSize:
		return "the workspace holds more than it may"
	case wire.QuotaFiles:
		return "the workspace holds more files than it may"
	case wire.QuotaDisk:
		return "the disk that the workspace is on is nearly full"
	}
	return ""
}

// quotaLimitOf returns "" for a limit that is not known.
func quotaLimitOf(f wire.QuotaLimit) QuotaLimit {
	if QuotaLimit(f).String() == "" {
		return ""
	}
	return QuotaLimit(f)
}
