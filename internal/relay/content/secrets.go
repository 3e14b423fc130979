package content

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/contentpolicy/leaks"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// secrets scans all new blobs, paths, messages and names.
func (j *inspection) secrets(ctx context.Context) error {
	scanner, err := leaks.Start(ctx, j.policy.Known...)
	if err != nil {
		return err
	}
	defer scanner.Stop()
	texts, err := j.scanTexts(ctx, scanner)
	if err != nil {
		return err
	}
	found, err := scanner.Finish()
	for _, text := range found {
		j.addLeaks(texts[text.Text], text.Leaks)
	}
	return err
}

// scanTexts gives the scanner all texts, and returns the location of each.
func (j *inspection) scanTexts(ctx context.Context, scanner *leaks.Scanner) (texts []location, err error) {
	for _, c := range j.list {
		said := strings.Join([]string{c.Author.Name, c.Author.Email, c.Committer.Name, c.Committer.Email, c.Message}, "\n")
		texts = append(texts, location{commit: c.ID})
		if err := scanner.Scan([]byte(said)); err != nil {
			return nil, err
		}
	}
	err = j.repo.Each(ctx, j.sized, j.policy.FileBytes, func(o git.Object, data []byte) error {
		at := j.blobs[o.ID]
		for _, from := range j.links[o.ID] {
			j.checkLink(from, string(data))
		}
		texts = append(texts, at)
		return scanner.Scan(append([]byte(at.path+"\n"), data...))
	})
	return texts, err
}

func (j *inspection) addLeaks(at location, found []leaks.Leak) {
	for _, leak := range found {
		where := "its message"
		if at.path != "" {
			where = fmt.Sprintf("line %d", max(1, leak.Line-1)) // the first is the path
		}
		j.report.add(contentpolicy.Finding{Rule: "secret", Verdict: contentpolicy.Blocked, Commit: at.commit, Path: at.path, Detail: fmt.Sprintf("%s looks like a secret (%s)", where, leak.Rule)})
	}
}

// checkLink reports a symbolic link that leads out of the tree.
func (j *inspection) checkLink(at location, target string) {
	if why := contentpolicy.LinkProblem(at.path, target); why != "" {
		j.report.add(contentpolicy.Finding{Rule: "symlink", Verdict: contentpolicy.Blocked, Commit: at.commit, Path: at.path, Detail: why})
	}
}
