package dockercli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func overview() string {
	return "Usage:  docker [OPTIONS] COMMAND\n\nAtoll's docker front end: containers are Atoll sandboxes.\n\nCommands:\n" +
		columns(plainNames()) + "\nManagement Commands:\n" + columns(slices.Sorted(maps.Keys(groupTable()))) +
		"\nRun 'docker COMMAND --help' for more information on a command.\n"
}

// plainNames are the verbs of one word.
func plainNames() []string {
	return slices.DeleteFunc(verbNames(), func(name string) bool { return strings.Contains(name, " ") })
}

func groupHelp(name string) string {
	return fmt.Sprintf("Usage:  docker %s COMMAND\n\nCommands:\n%s\nRun 'docker %s COMMAND --help' for more information on a command.\n",
		name, columns(slices.Sorted(maps.Keys(groupTable()[name]))), name)
}

// help is what a verb takes, and which of docker's flags it refuses.
func (f *flagSet) help(line string) string {
	var taken, refused []string
	for _, x := range f.flags {
		text := "--" + x.name
		if x.short != "" {
			text = "-" + x.short + ", " + text
		}
		if x.refused {
			refused = append(refused, "--"+x.name)
		} else {
			taken = append(taken, text)
		}
	}
	text := "Usage:  " + line + "\n"
	if len(taken) > 0 {
		text += "\nOptions:\n" + columns(taken)
	}
	if len(refused) > 0 {
		text += "\nRefused, with the reason:\n" + columns(refused)
	}
	return text
}

// columns are words below each other, as many beside each other as fit.
func columns(words []string) string {
	const width = 76
	wide := 0
	for _, word := range words {
		wide = max(wide, len(word)+2)
	}
	var b strings.Builder
	for row := range slices.Chunk(words, max(width/max(wide, 1), 1)) {
		for i, word := range row {
			row[i] = fmt.Sprintf("%-*s", wide-2, word)
		}
		b.WriteString(strings.TrimRight("  "+strings.Join(row, "  "), " ") + "\n")
	}
	return b.String()
}

// helpOn is "docker help run": what --help says of it.
func (c *cli) helpOn(ctx context.Context, topic []string) error {
	if len(topic) == 0 {
		fmt.Fprint(c.Out, overview())
		return nil
	}
	_, isVerb := verbTable()[topic[0]]
	_, isGroup := groupTable()[topic[0]]
	if !isVerb && !isGroup {
		return &plainError{fmt.Errorf("unknown help topic: %s", strings.Join(topic, " "))}
	}
	return c.main(ctx, append(slices.Clone(topic), "--help"))
}
