package entry

import (
	"strconv"
	"strings"
)

// Format is the entry as a record begins with it, "" if it cannot be told so.
func (e *Entry) Format() string {
	var b strings.Builder
	fields := e.each()
	for i, field := range fields {
		if i > 0 {
			b.WriteString(End)
		}
		if i < len(fields)-1 && strings.Contains(*field, End) {
			return ""
		}
		b.WriteString(*field)
	}
	return mark + strconv.Itoa(b.Len()) + "\n" + b.String()
}
