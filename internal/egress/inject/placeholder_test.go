package inject

import (
	"regexp"
	"strings"
	"testing"
)

func TestPlaceholdersHaveTheShapeOfTheirValues(t *testing.T) {
	for value, want := range map[string]string{
		"ghp_0123456789abcdefABCDEF0123456789abcd":                        `^ghp_[0-9A-Za-z]{36}$`,
		"github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz":       `^github_pat_[0-9A-Za-z]{46}$`,
		"glpat-0123456789abcdefXYZ":                                       `^glpat-[0-9A-Za-z]{19}$`,
		"123e4567-e89b-12d3-a456-426614174000":                            `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ": `^eyJ[0-9A-Za-z]{17}\.[0-9A-Za-z]{15}\.[0-9A-Za-z]{26}$`,
		"0123456789abcdef0123456789abcdef":                                `^[0-9a-f]{32}$`,
		"01234567890123456789":                                            `^[0-9]{20}$`,
		"01234567":                                                        `^[0-9A-Za-z]{8}$`, // too few digits to be random
		"ghp_0123":                                                        `^[0-9A-Za-z]{8}$`,
		"pass/word+with=signs":                                            `^[0-9A-Za-z]{20}$`,
		"correct-horse-battery":                                           `^[0-9A-Za-z]{21}$`,
	} {
		made, err := newPlaceholder(value)
		if err != nil || !regexp.MustCompile(want).MatchString(made) || made == value {
			t.Errorf("%q of %q: %v", made, value, err)
		}
		again, err := newPlaceholder(value)
		if err != nil || again == made {
			t.Errorf("%q twice: %v", made, err)
		}
	}
	if _, err := newPlaceholder("short"); err == nil || strings.Contains(err.Error(), "short ") {
		t.Errorf("%v", err)
	}
}
