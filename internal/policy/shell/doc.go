// Package shell decides whether a shell command is so plain that it can be sent
// as a list of words and never meet a shell: one simple command of literal
// words. Only such a command is compared with a pattern like "gh *", because
// only then is what was compared also what runs.
//
// A command is looked at three times. A small scanner names the first thing
// that is not plain, in linear time and without recursion. Then a real shell
// parser reads the command as POSIX shell and again as Bash; both must find the
// same single simple command. What any of the three doubts is refused.
//
// The words are those that a shell would make, so quotes and escapes vanish:
// gh, "gh", g'h' and \gh are all the word gh (the escape only keeps a shell from
// looking for an alias, and there is no shell). A refusal costs nothing but the
// shortcut: the caller treats the command as it treats any other.
//
// Reading whole scripts, and running anything, does not belong here.
package shell
