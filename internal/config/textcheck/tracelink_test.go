package textcheck

import (
	"strings"
	"testing"
)

func TestTraceLink(t *testing.T) {
	for text, good := range map[string]bool{
		"https://langfuse.example.org/trace/{trace}":                 true,
		"http://127.0.0.1:16686/trace/{trace}":                       true,
		"https://grafana.example.org/explore?left={trace}&a=b":       true,
		"https://example.org/#/{trace}":                              true,
		"https://example.org/trace/":                                 false,
		"https://{trace}.example.org/":                               false,
		"https://example.org:{trace}/":                               false,
		"https://example.org{trace}/":                                false,
		"https://{trace}/":                                           false,
		"{trace}":                                                    false,
		"//example.org/{trace}":                                      false,
		"javascript:alert({trace})":                                  false,
		"data:text/html,{trace}":                                     false,
		"ftp://example.org/{trace}":                                  false,
		"https://a:b@example.org/{trace}":                            false,
		"https://example.org/ {trace}":                               false,
		"https://example.org/\n{trace}":                              false,
		"https://example.org/{trace}" + strings.Repeat("a", maxLink): false,
	} {
		if message, _ := checkTraceLink(text); (message == "") != good {
			t.Errorf("%q: %q", text, message)
		}
	}
}
