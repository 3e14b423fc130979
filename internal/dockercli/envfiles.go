package dockercli

import (
	"fmt"
	"os"
	"strings"
)

// readLabels joins the labels of files and flags; flags win.
func readLabels(files, flags []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, file := range files {
		lines, err := readLines(file)
		if err != nil {
			return nil, err
		}
		flags = append(lines, flags...)
	}
	for _, text := range flags {
		name, value, _ := strings.Cut(text, "=")
		labels[name] = value
	}
	return labels, nil
}

// readEnv joins the variables of files and flags, in docker's order: files
// first. A name alone takes the value that this process has.
func readEnv(files, flags []string, getenv func(string) string) ([]string, error) {
	var env []string
	for _, file := range files {
		lines, err := readLines(file)
		if err != nil {
			return nil, err
		}
		env = mergeEnv(env, withProcessValues(lines, getenv))
	}
	return mergeEnv(env, withProcessValues(flags, getenv)), nil
}

// withProcessValues fills in the values of names that stand alone; without one they are left
// out.
func withProcessValues(entries []string, getenv func(string) string) []string {
	var out []string
	for _, entry := range entries {
		if !strings.Contains(entry, "=") {
			value := getenv(entry)
			if value == "" {
				continue
			}
			entry += "=" + value
		}
		out = append(out, entry)
	}
	return out
}

// readLines reads a file of variables or labels.
func readLines(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, localError(err.Error())
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		variable, name, ok := variableLine(line)
		if !ok {
			return nil, localError(fmt.Sprintf("invalid env file (%s): variable '%s' contains whitespaces", path, name))
		}
		if variable != "" {
			lines = append(lines, variable)
		}
	}
	return lines, nil
}
