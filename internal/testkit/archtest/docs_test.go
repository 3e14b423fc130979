package archtest_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist: the tables in docs/ say which test shows what.
// A test that was renamed or removed must not go on being named there.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	is := testNames(t, root)
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	named := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range unknownTests(string(text), is) {
			t.Errorf("%s names %s, which is no test", filepath.Base(document), name)
		}
		named += len(namedTest.FindAllString(string(text), -1))
	}
	if named < 100 {
		t.Errorf("only %d names were found", named)
	}
	if got := unknownTests("`TestNeverWritten`, `TestDocumentsNameTestsThatExist`", is); !slices.Equal(got, []string{"TestNeverWritten"}) {
		t.Errorf("a name that is no test: %v", got)
	}
}

var (
	namedTest = regexp.MustCompile("`(?:Test|Fuzz)[A-Z0-9_][A-Za-z0-9_]*`")
	testHead  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// unknownTests are the names of tests in a document that no test has.
func unknownTests(text string, is map[string]bool) []string {
	missing := map[string]bool{}
	for _, name := range namedTest.FindAllString(text, -1) {
		if name = strings.Trim(name, "`"); !is[name] {
			missing[name] = true
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// testNames are all tests of the tree.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return firstError(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, head := range testHead.FindAllStringSubmatch(string(text), -1) {
			names[head[1]] = true
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatal(len(names), err)
	}
	return names
}

func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
