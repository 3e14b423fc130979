package browserkeys

import "github.com/atoll-run/atoll/internal/config/amount"

// Narrow takes away what a project's file, which is not trusted, may take away. The file
// holds nothing else.
func (b *Browser) Narrow(f *File) {
	off(&b.Enabled, f.Enabled)
	off(&b.Evaluate, f.Evaluate)
	off(&b.Uploads, f.Uploads)
	off(&b.NoSandbox, f.NoSandbox)
	off(&b.IgnoreCertificates, f.IgnoreCertificates)
	lower(&b.PidsLimit, f.PidsLimit)
	lower(&b.Tabs, f.Tabs)
	lower(&b.IdleMinutes, f.IdleMinutes)
	lowerSize(&b.Memory, f.Memory)
	lowerSize(&b.ShmSize, f.ShmSize)
	word(&b.Profile, f.Profile)
	word(&b.View, f.View)
	word(&b.Control, f.Control)
	word(&b.CDP, f.CDP)
	if d := f.Downloads; d != nil {
		lowerSize(&b.Downloads.MaxBytes, d.MaxBytes)
		if d.MaxFiles != nil {
			b.Downloads.MaxFiles = min(b.Downloads.MaxFiles, *d.MaxFiles)
		}
	}
}

func off(value, other *bool) { *value = *value && (other == nil || *other) }

// word sets a value to one that takes away: others do not get here.
func word[T ~string](value, other *T) {
	if other != nil {
		*value = *other
	}
}

// lower takes the smaller of two limits; 0 is no limit.
func lower[T int | int64](limit, other *T) {
	if other != nil && *other > 0 && (*limit <= 0 || *other < *limit) {
		*limit = *other
	}
}

func lowerSize(limit *int64, other *amount.Size) {
	if other == nil {
		return
	}
	if size, err := other.Bytes(); err == nil {
		lower(limit, &size)
	}
}
