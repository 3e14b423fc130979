package checkout

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
)

// maxIndex bounds the index that is read: about 2,000,000 paths.
const maxIndex = 256 << 20

// Tracked returns the paths of the index, without running git. What it cannot read
// counts as empty: then nothing is tracked.
func (c *Checkout) Tracked() map[string]bool {
	text, err := readFile(filepath.Join(c.Dir, "index"), maxIndex)
	if err != nil {
		return nil
	}
	return parseIndex(text)
}

// The parts of an entry of the index before its path.
const (
	indexHeader   = 12
	indexFixed    = 62
	indexExtended = 0x4000
)

// parseIndex reads the paths of an index of version 2, 3 or 4; nil if it is none.
func parseIndex(text []byte) map[string]bool {
	if len(text) < indexHeader || string(text[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil
	}
	paths, rest, last := map[string]bool{}, text[indexHeader:], ""
	for range count {
		name, size := indexEntry(rest, version, last)
		if size <= 0 || size > len(rest) {
			return nil
		}
		paths[name], rest, last = true, rest[size:], name
	}
	return paths
}

// indexEntry reads the path of the first entry, and how many bytes it takes; 0 if
// it is not whole.
func indexEntry(text []byte, version uint32, last string) (name string, size int) {
	if len(text) < indexFixed {
		return "", 0
	}
	start := indexFixed
	if flags := binary.BigEndian.Uint16(text[60:]); version >= 3 && flags&indexExtended != 0 {
		start += 2
	}
	prefix := ""
	if version == 4 {
		strip, n := stripLength(text[min(start, len(text)):])
		if n == 0 || strip > len(last) {
			return "", 0
		}
		prefix, start = last[:len(last)-strip], start+n
	}
	if start > len(text) {
		return "", 0
	}
	end := bytes.IndexByte(text[start:], 0)
	if end < 0 {
		return "", 0
	}
	name, size = prefix+string(text[start:start+end]), start+end+1
	if version < 4 {
		size = (start + end + 8) &^ 7
	}
	return name, size
}

// stripLength reads how many bytes of the path before are not part of this one.
func stripLength(text []byte) (strip, size int) {
	for i, c := range text[:min(len(text), 5)] {
		strip = strip<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return strip, i + 1
		}
		strip++
	}
	return 0, 0
}
