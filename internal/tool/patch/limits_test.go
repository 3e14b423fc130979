package patch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/tool/patch"
)

func begin(body string) string { return "*** Begin Patch\n" + body + "*** End Patch\n" }

func TestLimitsOfAPatch(t *testing.T) {
	files := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "*** Delete File: %d\n", i)
		}
		return begin(b.String())
	}
	hunks := func(n int) string { return begin("*** Update File: f\n" + strings.Repeat("@@\n-a\n", n)) }
	size := func(n int) string {
		text := begin("*** Add File: f\n+")
		return strings.Replace(text, "+", "+"+strings.Repeat("x", n-len(text)-1)+"\n", 1)
	}
	cases := []struct {
		name string
		text func(int) string
		most int
		want error
	}{
		{"bytes", size, patch.MaxBytes, patch.ErrTooLarge},
		{"files", files, patch.MaxFiles, patch.ErrTooManyFiles},
		{"hunks", hunks, patch.MaxHunks, patch.ErrTooManyHunks},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := patch.Parse(c.text(c.most)); err != nil {
				t.Errorf("%d: %v", c.most, err)
			}
			if _, err := patch.Parse(c.text(c.most + 1)); !errors.Is(err, c.want) {
				t.Errorf("%d: %v", c.most+1, err)
			}
		})
	}
}

func TestLimitsOfAFile(t *testing.T) {
	const text = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\n"
	cases := []struct {
		name, content string
		want          error
	}{
		{"most bytes", "a\n" + strings.Repeat("x", patch.MaxFileBytes-2), nil},
		{"too many bytes", "a\n" + strings.Repeat("x", patch.MaxFileBytes-1), patch.ErrFileTooLarge},
		{"most lines", "a\n" + strings.Repeat("\n", patch.MaxFileLines-2), nil},
		{"too many lines", "a\n" + strings.Repeat("\n", patch.MaxFileLines), patch.ErrFileTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory(map[string]string{"f": c.content})
			if _, err := mustParse(t, text).Plan(t.Context(), m); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLimitOfAllFiles(t *testing.T) {
	big := strings.Repeat("x", patch.MaxFileBytes)
	m := newMemory(map[string]string{})
	body := ""
	for i := range patch.MaxPlanBytes/patch.MaxFileBytes + 1 {
		m.put(fmt.Sprint(i), big, 0o644)
		body += fmt.Sprintf("*** Delete File: %d\n", i)
	}
	if _, err := mustParse(t, begin(body)).Plan(t.Context(), m); !errors.Is(err, patch.ErrPlanTooLarge) {
		t.Errorf("got %v", err)
	}
	less := strings.Replace(body, "*** Delete File: 0\n", "", 1)
	if _, err := mustParse(t, begin(less)).Plan(t.Context(), m); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestCostIsBounded looks for many equal lines among very many equal lines.
func TestCostIsBounded(t *testing.T) {
	content := strings.Repeat("x\n", 100_000) + "y\n"
	cases := []struct {
		name, hunks string
		want        error
	}{
		{"one long hunk", "@@\n" + strings.Repeat("-x\n", 50_000) + "-y\n-y\n", patch.ErrTooCostly},
		{"many hunks", strings.Repeat("@@\n"+strings.Repeat(" x\n", 100)+"-y\n-y\n", 500), patch.ErrTooCostly},
		{"many headers", strings.Repeat("@@ x\n", 2000) + "-x\n", patch.ErrTooCostly},
		{"many places", "@@ x\n-x\n", patch.ErrAmbiguous},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory(map[string]string{"f": content})
			_, err := mustParse(t, begin("*** Update File: f\n"+c.hunks)).Plan(t.Context(), m)
			if !errors.Is(err, c.want) || len(err.Error()) > 500 {
				t.Errorf("got %.1000v", err)
			}
		})
	}
}
