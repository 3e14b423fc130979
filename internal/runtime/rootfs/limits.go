package rootfs

// Limits bound what an image may make us do. An image beyond any of them is
// refused and leaves nothing behind.
type Limits struct {
	Layers int   // of an image
	Size   int64 // bytes of an image's archives, uncompressed
	Files  int64 // entries of an image's archives
	Ratio  int64 // uncompressed to compressed bytes of a layer
	// RatioFree is how many bytes a layer may have whatever its ratio: a small
	// layer of zeros does no harm.
	RatioFree int64
	Name      int   // bytes of a path, and of what a link names
	Depth     int   // directories within each other
	Names     int64 // bytes of memory for a layer's directories: their names, and what goes with each
	Tags      int   // names that an archive has for an image
	Document  int64 // bytes of a manifest, an index or a configuration
}

// DefaultLimits are generous for an image that a person made.
func DefaultLimits() Limits {
	return Limits{
		Layers: 127, Size: 32 << 30, Files: 2_000_000, Ratio: 200, RatioFree: 64 << 20, Name: 4096, Depth: 256,
		Names: 128 << 20, Tags: 100, Document: 8 << 20,
	}
}

func (l Limits) orDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Layers: or(l.Layers, d.Layers), Size: or(l.Size, d.Size), Files: or(l.Files, d.Files), Ratio: or(l.Ratio, d.Ratio),
		RatioFree: or(l.RatioFree, d.RatioFree),
		Name:      or(l.Name, d.Name), Depth: or(l.Depth, d.Depth), Names: or(l.Names, d.Names), Tags: or(l.Tags, d.Tags), Document: or(l.Document, d.Document),
	}
}

func or[T int | int64](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}
