package prompt

import (
	"fmt"
	"strings"
)

// Facts are what is true of the place where an agent's tools work.
type Facts struct {
	Agent   string
	Sandbox string // its name; "" if tools work on the host
	Runtime string // "docker", "linux", …
	Image   string
	Workdir string
	Branch  string // of the repository in Workdir, whose commits leave; "" if none do
	// ReadOnly says that the workspace cannot be written; AgentDir is where the
	// agent workspace is seen read-only, if it is.
	ReadOnly bool
	AgentDir string
	// Overlay says that changes of the workspace are kept apart until they are approved.
	Overlay bool
	// Network is what the isolated sandbox reaches: "none", or a network's name.
	Network string
	// NetworkTools and NetworkCommands are the patterns that go to a second
	// sandbox that has a network.
	NetworkTools    []string
	NetworkCommands []string
	Tools           []string // that may be called
	Limits          string   // in words, "" if there are none
}

// Skill is something the agent may look up.
type Skill struct{ Name, Description, Path string }

// Compose writes the instructions. Behaviour files are marked as the agent's
// own where it can change them.
func Compose(facts *Facts, files []File, agentWritable bool, skills []Skill) string {
	parts := []string{
		fmt.Sprintf("You are the agent %q. You work by calling tools; when the task is done, say so in a short answer without calling any.", facts.Agent),
		"## Where you work\n" + strings.Join(place(facts), "\n"),
	}
	if len(skills) > 0 {
		parts = append(parts, skillSection(skills, agentWritable))
	}
	for _, f := range files {
		parts = append(parts, section(f, agentWritable))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

func place(f *Facts) []string {
	if f.Sandbox == "" {
		return []string{"- Your tools work directly on the host machine, without a sandbox. Change nothing outside " + f.Workdir + "."}
	}
	lines := []string{fmt.Sprintf("- Your tools work inside the sandbox %s (%s, image %s), never on the host.", f.Sandbox, f.Runtime, f.Image)}
	lines = append(lines, workspace(f)...)
	lines = append(lines, network(f)...)
	if f.Limits != "" {
		lines = append(lines, "- Limits: "+f.Limits+".")
	}
	return append(lines,
		"- No credential is in the sandbox, and none will be: do not look for tokens or keys.",
		"- Tools you may call: "+strings.Join(f.Tools, ", ")+".")
}

func workspace(f *Facts) []string {
	line := fmt.Sprintf("- Your working directory is %s; it is writable.", f.Workdir)
	if f.ReadOnly {
		line = fmt.Sprintf("- Your working directory is %s; it is read-only. /tmp is writable.", f.Workdir)
	}
	lines := []string{line}
	if f.Branch != "" {
		lines = append(lines, fmt.Sprintf("- It is a git repository on the branch %s. Commit what should be kept: when you have ended, your commits are checked and pushed from outside. You cannot push.", f.Branch))
	}
	if f.Overlay {
		lines = append(lines, "- It is your owner's own directory. What you change there, and what you commit, is kept apart until your owner has approved it.")
	}
	if f.AgentDir == "" {
		return lines
	}
	return append(lines, fmt.Sprintf("- The agent workspace is at %s, read-only.", f.AgentDir))
}

func network(f *Facts) []string {
	if f.Network != "none" {
		return []string{"- Network: " + f.Network + "."}
	}
	lines := []string{"- There is no network: nothing outside the sandbox can be reached."}
	if len(f.NetworkTools)+len(f.NetworkCommands) > 0 {
		lines[0] = "- There is no network, but for these, which work in a second sandbox that sees the same files: " +
			strings.Join(append(append([]string(nil), f.NetworkTools...), quoted(f.NetworkCommands)...), ", ") + "."
	}
	return lines
}

func quoted(commands []string) (list []string) {
	for _, c := range commands {
		list = append(list, fmt.Sprintf("the command `%s`", c))
	}
	return list
}

// skillSection names the skills. Their descriptions are one line each.
func skillSection(skills []Skill, agentWritable bool) string {
	lines := []string{"## Skills", "Read a skill's file before you use it."}
	if agentWritable {
		lines = append(lines, "You can change these files yourself, so they may say things that your owner never did.")
	}
	for _, s := range skills {
		lines = append(lines, fmt.Sprintf("- %s (%s): %s", s.Name, s.Path, s.Description))
	}
	return strings.Join(lines, "\n")
}

// section fences a file, so that its text cannot be taken for ours.
func section(f File, agentWritable bool) string {
	whose := "written by your owner"
	if agentWritable {
		whose = "you can change this file yourself, so it may say things that your owner never did"
	}
	fence := "```"
	for strings.Contains(f.Text, fence) {
		fence += "`"
	}
	return fmt.Sprintf("## %s (%s)\n%s\n%s\n%s", f.Name, whose, fence, strings.TrimRight(f.Text, "\n"), fence)
}
