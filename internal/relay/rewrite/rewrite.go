// Package rewrite makes commits that can be shown to people out of commits that
// an agent made: the same trees in the same order, under the name of the relay,
// with messages that trigger nothing. The same commits always become the same
// ones, so that a branch can be continued.
package rewrite

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// Identity is the author and committer of rewritten commits.
type Identity struct {
	Name  string
	Email string
}

// Commits writes the commits anew, parents first, and returns the last. Parents
// that are not among them, the base and what it stands on, stay what they are.
func Commits(ctx context.Context, repo *git.Repo, commits []*git.Commit, by Identity) (head string, err error) {
	anew := map[string]string{}
	for _, c := range commits {
		if head, err = rewriteCommit(ctx, repo, c, anew, by); err != nil {
			return "", fmt.Errorf("write commit %s anew: %w", c.ID, err)
		}
		anew[c.ID] = head
	}
	return head, nil
}

func rewriteCommit(ctx context.Context, repo *git.Repo, c *git.Commit, anew map[string]string, by Identity) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, parent := range c.Parents {
		if made, ok := anew[parent]; ok {
			parent = made
		}
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s\n", by.line(c.Author))
	fmt.Fprintf(&b, "committer %s\n\n%s", by.line(c.Committer), message(c))
	out, err := repo.Output(ctx, strings.NewReader(b.String()), "hash-object", "-t", "commit", "-w", "--stdin")
	return strings.TrimSpace(string(out)), err
}

// The dates that are believed; others become the nearest of these.
const (
	earliest = 1_112_911_993 // the first commit of git itself
	latest   = 4_102_444_800 // 2100
)

func (by Identity) line(p git.Person) string {
	zone := p.Zone
	if len(zone) != 5 || strings.Trim(zone[1:], "0123456789") != "" || zone[0] != '+' && zone[0] != '-' {
		zone = "+0000"
	}
	return fmt.Sprintf("%s <%s> %d %s", singleLine(by.Name), singleLine(by.Email), min(max(p.When, earliest), latest), zone)
}

// message is the agent's message, with trailers for the agent's own author line
// and commit id.
func message(c *git.Commit) string {
	return fmt.Sprintf("%s\n\nAgent-Author: %s <%s>\nAgent-Commit: %s\n", Message(c.Message), singleLine(c.Author.Name), singleLine(c.Author.Email), c.ID)
}
