package git

// environment is all that git sees of the host. No file of a user or of the
// system configures it; a missing object is never fetched; it never prompts.
func environment(dir string) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/nonexistent",
		"XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C.UTF-8",
		"TZ=UTC",
		"GIT_DIR=" + dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false",
		"SSH_ASKPASS=/bin/false",
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_PAGER=cat",
		"GIT_EDITOR=/bin/false",
	}
}

// settings are before every verb. They hold also against the configuration of
// the repository itself, which is ours.
func settings() []string {
	pairs := []string{
		"core.hooksPath=/dev/null",
		"core.fsmonitor=false",
		"core.attributesFile=/dev/null",
		"core.excludesFile=/dev/null",
		"core.protectHFS=true",
		"core.protectNTFS=true",
		"core.bigFileThreshold=1m", // larger ones are streamed, not held
		"core.quotePath=true",
		"credential.helper=",
		"protocol.allow=never",
		"protocol.ext.allow=never",
		"http.followRedirects=false",
		"gc.auto=0",
		"maintenance.auto=false",
		"transfer.fsckObjects=true",
		"fetch.fsckObjects=true",
		"submodule.recurse=false",
		"diff.external=",
		"diff.ignoreSubmodules=none",
		"log.showSignature=false",
		"gpg.program=/bin/false",
		"advice.detachedHead=false",
	}
	args := []string{"--no-pager"}
	for _, pair := range pairs {
		args = append(args, "-c", pair)
	}
	return args
}
