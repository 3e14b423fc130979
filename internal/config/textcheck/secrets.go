package textcheck

import (
	"slices"
	"strings"
)

func checkHeaderName(text string) (message, hint string) {
	if !headerNameForm.MatchString(text) {
		return "expected the name of a header, such as Authorization", ""
	}
	if slices.ContainsFunc(framingHeaders, func(name string) bool { return strings.EqualFold(name, text) }) {
		return "a secret cannot be in this header", "write the header that the server reads the credential from"
	}
	return "", ""
}

// framingHeaders say where a request goes and how long it is.
var framingHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer", "Expect"}

// placeOfValue stands for the value in the form of a header.
const placeOfValue = "{}"

func checkHeaderForm(text string) (message, hint string) {
	const form = `write it with {} for the value, such as "Bearer {}"`
	if message, _ = checkLine(text); message != "" {
		return message, form
	}
	if strings.Count(text, placeOfValue) != 1 {
		return "must have {} once, for the value", form
	}
	return "", ""
}
