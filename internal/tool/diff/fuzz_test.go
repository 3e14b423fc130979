package diff_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/tool/diff"
)

// FuzzUnified checks that a diff applied to the old text gives the new one, and
// that it is no larger than one of the whole texts.
func FuzzUnified(f *testing.F) {
	for _, seed := range [][2]string{
		{"", "x"}, {"a\nb\nc\n", "a\nc\nd"}, {"a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n"}, {"x\r\ny", "x\ny\n"},
		{"\n\n\n", "\n"}, {"-a\n+b\n@@\n", "@@ -1 +1 @@\n"}, {"\\ No newline", "\\ No newline\n"}, {"a\nb", "b\na"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		checkRoundTrip(t, a, b)
		cut := diff.Unified("a", "b", a, b, 50)
		if len(cut) > 50+len("\\ Diff cut here: 1000000 more changed lines\n") {
			t.Fatalf("%d bytes for a limit of 50", len(cut))
		}
	})
}

func checkRoundTrip(t *testing.T, a, b []byte) {
	t.Helper()
	if bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0 {
		return
	}
	text := diff.Unified("a", "b", a, b, 0)
	got, err := apply(a, text)
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("%q to %q: %v, got %q by\n%s", a, b, err, got, text)
	}
	if (text == "") != bytes.Equal(a, b) {
		t.Fatalf("%q for %q to %q", text, a, b)
	}
}

// apply is patch(1) without its guesses.
func apply(a []byte, text string) ([]byte, error) {
	old := strings.SplitAfter(string(a), "\n")
	var out strings.Builder
	next, remove, add := 0, 0, 0
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if i < 2 || line == "" || strings.HasPrefix(line, `\`) {
			continue
		}
		if remove == 0 && add == 0 {
			var at int
			if err := header(line, &at, &remove, &add); err != nil {
				return nil, fmt.Errorf("line %d: %q: %w", i+1, line, err)
			}
			for ; next < at; next++ {
				out.WriteString(old[next])
			}
			continue
		}
		body := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\`) {
			body = strings.TrimSuffix(body, "\n")
		}
		if line[0] != '+' {
			if next >= len(old) || old[next] != body {
				return nil, fmt.Errorf("line %d: %q is not in the text at %d", i+1, body, next)
			}
			next++
			remove--
		}
		if line[0] != '-' {
			out.WriteString(body)
			add--
		}
	}
	if remove != 0 || add != 0 {
		return nil, errors.New("hunk ends early")
	}
	out.WriteString(strings.Join(old[next:], ""))
	return []byte(out.String()), nil
}

// header reads "@@ -l,n +l,n @@" and gives the index of the first line.
func header(line string, at, remove, add *int) (err error) {
	var oldSpan, newSpan string
	if _, err := fmt.Sscanf(line, "@@ -%s +%s @@\n", &oldSpan, &newSpan); err != nil {
		return err
	}
	var errs [3]error
	start, count, _ := strings.Cut(oldSpan+",1", ",")
	*at, errs[0] = strconv.Atoi(start)
	*remove, errs[1] = strconv.Atoi(strings.TrimSuffix(count, ",1"))
	_, count, _ = strings.Cut(newSpan+",1", ",")
	*add, errs[2] = strconv.Atoi(strings.TrimSuffix(count, ",1"))
	if *remove > 0 {
		*at--
	}
	return errors.Join(errs[:]...)
}

func TestRandomTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		checkRoundTrip(t, []byte(randomText(random)), []byte(randomText(random)))
	}
}

func randomText(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(30) {
		fmt.Fprintln(&b, random.IntN(5))
	}
	return b.String()
}

// TestCostIsBounded gives the algorithm its worst case: long texts with almost
// nothing in common. The diff must still be right.
func TestCostIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var a, b strings.Builder
	for range 20_000 {
		fmt.Fprintln(&a, random.IntN(50))
		fmt.Fprintln(&b, random.IntN(50))
	}
	checkRoundTrip(t, []byte(a.String()), []byte(b.String()))
}

func BenchmarkUnified(b *testing.B) {
	old := []byte(numbers(1, 5000))
	changed := bytes.ReplaceAll(old, []byte("77\n"), []byte("x\ny\n"))
	for b.Loop() {
		diff.Unified("a", "b", old, changed, 0)
	}
}
