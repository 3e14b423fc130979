package browserkeys

import (
	"fmt"
	"strconv"
	"strings"
)

// The bounds of each side of a page in pixels.
const (
	MinSide = 200
	MaxSide = 4096
)

// ParseViewport reads WIDTHxHEIGHT.
func ParseViewport(text string) (width, height int, err error) {
	w, h, ok := strings.Cut(text, "x")
	width, wErr := strconv.Atoi(w)
	height, hErr := strconv.Atoi(h)
	if !ok || wErr != nil || hErr != nil || text != fmt.Sprintf("%dx%d", width, height) {
		return 0, 0, fmt.Errorf("%.40q is not WIDTHxHEIGHT", text)
	}
	if min(width, height) < MinSide || max(width, height) > MaxSide {
		return 0, 0, fmt.Errorf("a side of a page has %d to %d pixels", MinSide, MaxSide)
	}
	return width, height, nil
}
