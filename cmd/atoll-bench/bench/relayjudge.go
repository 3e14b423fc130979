package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// What is judged, and what is claimed of it.
const (
	judgedFiles  = 1000 // changed by each commit
	judgedRounds = 3
	judgedGrowth = 1.5 // a commit among the most against one among the fewest, at most
	largeFiles   = 200
	largeLines   = 2000
	largeRate    = 10 // MB/s of them, at least
)

// judgedCommits are how many commits are judged at once.
func judgedCommits() []int { return []int{25, 50, 100} }

// judgement measures the content policy apart: how much it looks through in a
// second, and that a hundred commits take no longer, each, than a few.
func (s *relayStage) judgement(ctx context.Context, r *Report) error {
	dir := filepath.Join(s.dir, "judged.git")
	most := judgedCommits()[len(judgedCommits())-1]
	fmt.Fprintf(s.options.Progress, "judging %d commits of %d files …\n", most, judgedFiles)
	if err := makeWide(ctx, dir, judgedFiles, most+1); err != nil {
		return err
	}
	repo, err := git.Open(dir, confined.Limits{Memory: 8 << 30})
	if err != nil {
		return err
	}
	if err := s.judgeLarge(ctx, repo, r); err != nil {
		return err
	}
	first, last := 0.0, 0.0
	for _, n := range judgedCommits() {
		took, rate, err := judge(ctx, repo, "c0", fmt.Sprintf("c%d", n), n)
		if err != nil {
			return err
		}
		one := row(fmt.Sprintf("judging %d commits of %d files", n, judgedFiles), "ms", took)
		r.Rows = append(r.Rows, one, row(fmt.Sprintf("contents looked through, %d commits", n), "MB/s", rate))
		if last = one.P50 / float64(n); first == 0 {
			first = last
		}
	}
	r.Ratios = append(r.Ratios, atMost(fmt.Sprintf("judging: a commit among %d against one among %d, p50", most, judgedCommits()[0]), last/first, judgedGrowth))
	return nil
}

// judgeLarge looks at one commit with files of some 70 KB: what a megabyte takes,
// where small ones show what a file takes.
func (s *relayStage) judgeLarge(ctx context.Context, repo *git.Repo, r *Report) error {
	_, rate, err := judge(ctx, repo, "c0", "large", 1)
	if err != nil {
		return err
	}
	one := row(fmt.Sprintf("contents looked through, %d files of %d lines", largeFiles, largeLines), "MB/s", rate)
	r.Rows = append(r.Rows, one)
	r.Ratios = append(r.Ratios, atLeast("judging: MB/s of files of usual size, p50", one.P50, largeRate))
	return nil
}

// judge looks at the n commits between two branches, in milliseconds and
// megabytes a second.
func judge(ctx context.Context, repo *git.Repo, from, to string, n int) (took, rate []float64, err error) {
	base, err := repo.Resolve(ctx, "refs/heads/"+from)
	if err != nil {
		return nil, nil, err
	}
	head, err := repo.Resolve(ctx, "refs/heads/"+to)
	if err != nil {
		return nil, nil, err
	}
	for range judgedRounds {
		start := time.Now()
		report, err := content.Judge(ctx, repo, base, head, content.Policy{Time: 10 * time.Minute})
		if err != nil {
			return nil, nil, err
		}
		if len(report.Findings) > 0 || len(report.Commits) != n {
			return nil, nil, errors.New("the policy found what is not there: " + report.Findings[0].String())
		}
		spent := time.Since(start)
		took = append(took, microseconds(spent)/milliseconds)
		rate = append(rate, float64(report.Bytes)/1e6/spent.Seconds())
	}
	return took, rate, nil
}

// makeHistory makes a bare repository whose main has so many files and commits.
func makeHistory(ctx context.Context, dir string, files, commits int) error {
	var b bytes.Buffer
	words := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same figures every time
	for n := range commits {
		commitLine(&b, "main", n)
		if n == 0 {
			for f := range files {
				fileLine(&b, words, f, n, smallLines)
			}
			continue
		}
		fileLine(&b, words, words.IntN(files), n, smallLines)
	}
	return importInto(ctx, dir, &b)
}

// makeWide makes a bare repository in which every commit changes every file; the
// branch cN is the Nth. On the first stands another, with large files.
func makeWide(ctx context.Context, dir string, files, commits int) error {
	var b bytes.Buffer
	words := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same figures every time
	for n := range commits {
		commitLine(&b, fmt.Sprintf("c%d", n), n)
		if n > 0 {
			fmt.Fprintf(&b, "from refs/heads/c%d\n", n-1)
		}
		for f := range files {
			fileLine(&b, words, f, n, smallLines)
		}
	}
	commitLine(&b, "large", commits)
	fmt.Fprintln(&b, "from refs/heads/c0")
	for f := range largeFiles {
		fileLine(&b, words, f, commits, largeLines)
	}
	return importInto(ctx, dir, &b)
}

func commitLine(b *bytes.Buffer, branch string, n int) {
	fmt.Fprintf(b, "commit refs/heads/%s\ncommitter Owner <owner@example.com> %d +0000\ndata 4\nwork\n", branch, 1_700_000_000+n)
}

// smallLines is how long most files are.
const smallLines = 8

// fileLine is one version of one file: some lines of a program. Each has a word
// that is looked for, and nothing that is found.
func fileLine(b *bytes.Buffer, words *rand.Rand, file, version, lines int) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "version %d\n", version)
	for range lines {
		fmt.Fprintf(&text, "func key%d() int { return %d }\n", words.IntN(1000), words.IntN(1000))
	}
	fmt.Fprintf(b, "M 644 inline dir-%d/file-%d\ndata %d\n%s\n", file%100, file, text.Len(), text.Bytes())
}

func importInto(ctx context.Context, dir string, stream *bytes.Buffer) error {
	if err := gits(ctx, []string{"init", "-q", "--bare", "-b", "main", dir}); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "fast-import", "--quiet")
	cmd.Stdin = stream
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, out)
	}
	return nil
}
