// Package trust decides what a configuration file may say.
//
// A person's own files (--config, $ATOLL_CONFIG, the state directory's
// atoll.json5, $OPENCLAW_CONFIG_PATH, ~/.openclaw/openclaw.json) may say
// everything. A file that is found in the working directory was perhaps written
// by code in a sandbox, or came with a cloned repository: until a person trusts
// its content (atoll config trust) it can only take away, and a file that others
// can write counts for nothing.
//
// Trust is remembered in the state directory, by path and content. The programs
// and host paths that the file names are remembered too: a script of the project
// that prints a key is as powerful as the file that names it.
package trust
