package dockercli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// add reads the flags of limits. What is wrong with them is wrong with the
// command line.
func (l *Limits) add(f *flagSet) {
	f.number(&l.Pids, "pids-limit", "")
	f.add("memory", "m", func(v string) (err error) { l.Memory, err = size(v); return err })
	f.add("memory-swap", "", func(v string) (err error) {
		if v == "-1" {
			l.MemorySwap = -1
			return nil
		}
		l.MemorySwap, err = size(v)
		return err
	})
	f.add("cpus", "", func(v string) (err error) {
		if l.CPUs, err = strconv.ParseFloat(v, 64); err != nil || l.CPUs < 0 {
			return fmt.Errorf("failed to parse %s as a rational number", v)
		}
		return nil
	})
	f.add("ulimit", "", func(v string) error {
		limit, err := ulimit(v)
		l.Ulimits = append(l.Ulimits, limit)
		return err
	})
}

// ulimit reads "name=soft[:hard]".
func ulimit(text string) (Ulimit, error) {
	name, values, ok := strings.Cut(text, "=")
	if !ok {
		return Ulimit{}, fmt.Errorf("invalid ulimit argument: %s", text)
	}
	if !slices.Contains(ulimitNames(), name) {
		return Ulimit{}, fmt.Errorf("invalid ulimit type: %s", name)
	}
	soft, hard, both := strings.Cut(values, ":")
	if !both {
		hard = soft
	}
	s, errSoft := strconv.ParseInt(soft, 10, 64)
	h, errHard := strconv.ParseInt(hard, 10, 64)
	switch {
	case errSoft != nil:
		return Ulimit{}, errSoft
	case errHard != nil:
		return Ulimit{}, errHard
	case h != -1 && (s > h || s == -1):
		return Ulimit{}, fmt.Errorf("ulimit soft limit must be less than or equal to hard limit: %d > %d", s, h)
	}
	return Ulimit{Name: name, Soft: s, Hard: h}, nil
}

func ulimitNames() []string {
	return []string{"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"}
}

// size reads bytes with docker's units.
func size(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimRight(strings.ToLower(text), "bkmgtpi")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text)[len(number):], "b"), "i")
	shift, ok := map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || n < 0 || n > float64(int64(1)<<(62-shift)) {
		return 0, fmt.Errorf("invalid size: '%s'", text)
	}
	return int64(n * float64(int64(1)<<shift)), nil
}

// variables reads a flag that names a variable, with its value or without.
func (f *flagSet) variables(to *[]string) {
	f.add("env", "e", func(v string) error {
		if name, _, _ := strings.Cut(v, "="); name == "" {
			return fmt.Errorf("invalid environment variable: %s", v)
		}
		*to = append(*to, v)
		return nil
	})
}

// streams reads a flag that names one of a command's three streams.
func (f *flagSet) streams(to *[]string, name, short string) {
	f.add(name, short, func(v string) error {
		stream := strings.ToLower(v)
		if !slices.Contains([]string{"stdin", "stdout", "stderr"}, stream) {
			return errors.New("valid streams are STDIN, STDOUT and STDERR")
		}
		*to = append(*to, stream)
		return nil
	})
}
