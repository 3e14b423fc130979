package gate

import (
	"cmp"
	"slices"
	"strings"
)

// The waves of a batch, in their order.
const (
	waveClear   = iota // files where a directory will be
	waveDirs           // new directories
	waveFiles          // new, changed and exchanged files
	waveRemove         // deletions, the deepest first
	waveReplace        // files where a directory was
)

// order gives the steps their waves and sorts them.
func order(steps []step) []step {
	dirMade, dirGone := map[string]bool{}, map[string]bool{}
	for i := range steps {
		s := &steps[i]
		dirMade[s.Path] = dirMade[s.Path] || s.After != nil && s.After.Type == typeDir
		dirGone[s.Path] = dirGone[s.Path] || s.After == nil && s.Before.Type == typeDir
	}
	for i := range steps {
		s := &steps[i]
		switch {
		case s.After == nil && s.Before.Type != typeDir && dirMade[s.Path]:
			s.Wave = waveClear
		case s.After == nil:
			s.Wave = waveRemove
		case s.After.Type == typeDir:
			s.Wave = waveDirs
		case dirGone[s.Path]:
			s.Wave = waveReplace
		default:
			s.Wave = waveFiles
		}
	}
	slices.SortFunc(steps, func(a, b step) int {
		if a.Wave != b.Wave {
			return cmp.Compare(a.Wave, b.Wave)
		}
		if a.Wave == waveRemove {
			return strings.Compare(b.Path, a.Path)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return steps
}
