package dockercli

import (
	"fmt"
	"strconv"
	"strings"
)

// flagSet reads one verb's flags in docker's way: --name value, --name=value,
// -n value, -nvalue, and single letters together (-it). The standard library's
// flags cannot do the last, and a larger library costs every start.
type flagSet struct {
	flags []*flag
	// mixed lets flags follow arguments. Verbs that run a command do not: its
	// flags are its own.
	mixed bool
}

type flag struct {
	name, short string
	isSwitch    bool
	refused     bool
	set         func(string) error
}

func (f *flagSet) add(name, short string, set func(string) error) {
	f.flags = append(f.flags, &flag{name: name, short: short, set: set})
}

func (f *flagSet) text(to *string, name, short string) {
	f.add(name, short, func(v string) error { *to = v; return nil })
}

func (f *flagSet) list(to *[]string, name, short string) {
	f.add(name, short, func(v string) error { *to = append(*to, v); return nil })
}

func (f *flagSet) number(to *int64, name, short string) {
	f.add(name, short, func(v string) (err error) { *to, err = strconv.ParseInt(v, 10, 64); return err })
}

func (f *flagSet) boolean(to *bool, name, short string) {
	f.flags = append(f.flags, &flag{name: name, short: short, isSwitch: true, set: func(v string) (err error) {
		*to, err = strconv.ParseBool(v)
		return err
	}})
}

// refuse names flags that docker knows and that have no place here. Those that
// take no value are written with a ! after the name.
func (f *flagSet) refuse(reason string, names ...string) {
	for _, name := range names {
		name, isSwitch := strings.CutSuffix(name, "!")
		name, short, _ := strings.Cut(name, ",")
		f.flags = append(f.flags, &flag{name: name, short: short, isSwitch: isSwitch, refused: true, set: func(v string) error {
			if isSwitch && v == "false" {
				return nil
			}
			return &refusal{"--" + name, reason, hints()[reason]}
		}})
	}
}

// refusal is a flag that is understood and not obeyed.
type refusal struct{ flag, reason, hint string }

func (r *refusal) Error() string { return r.flag + " is refused: " + r.reason }

// parse returns the arguments that are no flags.
func (f *flagSet) parse(args []string) (rest []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "--":
			return append(rest, args[1:]...), nil
		case strings.HasPrefix(arg, "--"):
			args, err = f.long(arg[2:], args[1:])
		case len(arg) > 1 && arg[0] == '-':
			args, err = f.letters(arg[1:], args[1:])
		case f.mixed:
			rest, args = append(rest, arg), args[1:]
		default:
			return append(rest, args...), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func (f *flagSet) long(text string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(text, "=")
	found := f.find(func(x *flag) bool { return x.name == name })
	switch {
	case name == "help":
		return nil, errHelp
	case found == nil:
		return nil, fmt.Errorf("unknown flag: --%s", name)
	case hasValue:
	case found.isSwitch:
		value = "true"
	case len(rest) == 0:
		return nil, fmt.Errorf("flag needs an argument: --%s", name)
	default:
		value, rest = rest[0], rest[1:]
	}
	return rest, found.assign(value, "--"+name)
}

func (f *flagSet) letters(text string, rest []string) ([]string, error) {
	for i := range len(text) {
		found := f.find(func(x *flag) bool { return x.short == text[i:i+1] })
		value, isLast := text[i+1:], i+1 == len(text)
		switch {
		case found == nil && text[i] == 'h':
			return nil, errHelp
		case found == nil:
			return nil, fmt.Errorf("unknown shorthand flag: '%c' in -%s", text[i], text)
		case found.isSwitch && strings.HasPrefix(value, "="):
			return rest, found.assign(value[1:], "-"+found.short)
		case found.isSwitch:
			if err := found.assign("true", "-"+found.short); err != nil {
				return nil, err
			}
			continue
		case isLast && len(rest) == 0:
			return nil, fmt.Errorf("flag needs an argument: '%c' in -%s", text[i], text)
		case isLast:
			value, rest = rest[0], rest[1:]
		}
		if !isLast {
			value = strings.TrimPrefix(value, "=")
		}
		return rest, found.assign(value, "-"+found.short)
	}
	return rest, nil
}

func (f *flagSet) find(is func(*flag) bool) *flag {
	for _, x := range f.flags {
		if is(x) {
			return x
		}
	}
	return nil
}

// assign sets a flag's value; errors are worded as docker's.
func (x *flag) assign(value, written string) error {
	err := x.set(value)
	if err == nil {
		return nil
	}
	if r, ok := err.(*refusal); ok { //nolint:errorlint // made right here, never wrapped
		return r
	}
	if x.short != "" {
		written = "-" + x.short + ", --" + x.name
	}
	return fmt.Errorf("invalid argument %q for %q flag: %w", value, written, err)
}
