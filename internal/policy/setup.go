package policy

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy/shell/script"
)

// needs are what a command cannot do without.
type needs struct {
	network  bool
	root     bool // user id 0
	writable bool // a root file system that can be written
	chown    bool // the capability to give a file to another user
}

// SetupObstacles lists why a setup command cannot succeed in the sandbox that
// is configured, with the fields to change. user is who will run it: "" if
// only the image knows. It reports nothing that might work.
func SetupObstacles(setup string, box config.Sandbox, user string) []Finding {
	if trim(setup) == "" {
		return nil
	}
	s := script.Read(setup)
	sandbox := setupSandbox{docker: box.Docker, egress: box.Egress.Mode, user: user}
	var found findings
	for _, c := range s.Commands {
		sandbox.judge(&found, c)
	}
	for _, target := range s.Writes {
		sandbox.judgeWrite(&found, target)
	}
	for i := range found {
		found[i].Cause = "sandbox.docker.setupCommand"
	}
	return slices.CompactFunc(slices.SortedStableFunc(slices.Values(found), compareFindings),
		func(a, b Finding) bool { return a == b })
}

func compareFindings(a, b Finding) int { return strings.Compare(a.Field, b.Field) }

// setupSandbox is the sandbox that a setup command runs in.
type setupSandbox struct {
	docker config.Docker
	egress config.EgressMode
	user   string
}

func (s setupSandbox) judge(found *findings, c script.Command) {
	need := needsOf(c)
	what := strings.TrimSpace(c.Name + " " + firstOperand(c.Args))
	if need.network && s.offline() {
		found.add("network", `Set sandbox.egress.allow to the names that it reaches, or build an image that already holds what is needed.`,
			"setupCommand runs %q, which needs a network, but network is \"none\"", what)
	}
	if (need.root || c.Sudo) && s.notRoot() {
		found.add("user", `Set sandbox.docker.user to "0:0", or build an image that already holds what is needed.`,
			"setupCommand runs %q, which only root can do, but user is %q and no process may gain privileges", what, s.user)
	}
	if need.writable && s.docker.ReadOnlyRoot {
		found.add("readOnlyRoot", "Set sandbox.docker.readOnlyRoot to false, or build an image that already holds what is needed.",
			"setupCommand runs %q, which changes the system, but readOnlyRoot is true", what)
	}
	if need.chown && s.rootWithoutChown() {
		found.add("capDrop", "Leave CHOWN out of sandbox.docker.capDrop, or build an image that already holds what is needed.",
			"setupCommand runs %q, which gives files to another user, but capDrop takes the capability CHOWN", what)
	}
	for _, target := range writtenBy(c) {
		s.judgeWrite(found, target)
	}
}

// systemDirs are part of the root of every image: no image has a volume there.
var systemDirs = []string{"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", "/usr"}

func (s setupSandbox) judgeWrite(found *findings, target string) {
	target = NormalizePath(target)
	isSystem := slices.ContainsFunc(systemDirs, func(dir string) bool { return within(target, dir) })
	if s.docker.ReadOnlyRoot && isSystem && !s.mayWrite(target) {
		found.add("readOnlyRoot", "Write below the workdir or a tmpfs, or set sandbox.docker.readOnlyRoot to false.",
			"setupCommand writes %q, but readOnlyRoot is true", target)
	}
}

func (s setupSandbox) offline() bool {
	mode := strings.ToLower(trim(s.docker.Network))
	return (mode == "" || mode == "none") && (s.egress == "" || s.egress == config.EgressOff)
}

func (s setupSandbox) notRoot() bool {
	name, _, _ := strings.Cut(s.user, ":")
	return name != "" && name != "root" && strings.Trim(name, "0") != ""
}

// rootWithoutChown reports whether commands run as root that cannot give files away.
func (s setupSandbox) rootWithoutChown() bool {
	return s.user != "" && !s.notRoot() && slices.ContainsFunc(s.docker.CapDrop, func(written string) bool {
		name := capability(written)
		return name == "ALL" || name == "CHOWN"
	})
}

// mayWrite tells whether a path lies outside of the root file system.
func (s setupSandbox) mayWrite(target string) bool {
	places := []string{NormalizePath(s.docker.Workdir), AgentTarget, "/dev", "/proc"}
	for _, spec := range s.docker.Tmpfs {
		places = append(places, SplitTmpfs(spec).Target)
	}
	for _, spec := range s.docker.Binds {
		places = append(places, bindTarget(spec))
	}
	return slices.ContainsFunc(places, func(place string) bool { return within(target, place) })
}

// packageManagers of systems: which of their subcommands download, and which
// only change what is installed.
var packageManagers = map[string]struct{ download, change []string }{
	"apt":      {aptDownloads, aptChanges},
	"apt-get":  {aptDownloads, aptChanges},
	"aptitude": {aptDownloads, aptChanges},
	"apk":      {strings.Fields("add update upgrade fix"), strings.Fields("del")},
	"dnf":      {dnfDownloads, dnfChanges},
	"yum":      {dnfDownloads, dnfChanges},
	"microdnf": {dnfDownloads, dnfChanges},
	"zypper":   {strings.Fields("install in update up dist-upgrade dup refresh ref"), strings.Fields("remove rm")},
	"pacman":   {strings.Fields("-S -Sy -Syu -Syyu --sync"), strings.Fields("-R -Rs -Rns -U --remove --upgrade")},
	"dpkg":     {nil, strings.Fields("-i --install --unpack --configure -r --remove -P --purge")},
	"rpm":      {nil, strings.Fields("-i -ivh -U -Uvh -F -Fvh -e --install --upgrade --erase")},
}

var (
	aptDownloads = strings.Fields("install reinstall update upgrade dist-upgrade full-upgrade build-dep")
	aptChanges   = strings.Fields("remove purge autoremove")
	dnfDownloads = strings.Fields("install reinstall update upgrade makecache groupinstall")
	dnfChanges   = strings.Fields("remove erase autoremove")
)

// systemPrograms change the accounts or the libraries of a system.
var systemPrograms = strings.Fields(
	"useradd userdel usermod groupadd groupdel adduser addgroup chpasswd ldconfig locale-gen update-ca-certificates")

// languageInstallers download with these subcommands.
var languageInstallers = map[string][]string{
	"npm": {"install", "i", "ci", "add"}, "pnpm": {"install", "i", "add"}, "yarn": {"install", "add", "global"},
	"bun": {"install", "i", "add"}, "pip": {"install"}, "pip3": {"install"}, "gem": {"install"},
	"cargo": {"install", "fetch"}, "go": {"install", "get"},
}

// needsOf tells what a command needs. A command that is not known needs nothing.
func needsOf(c script.Command) needs {
	if manager, ok := packageManagers[c.Name]; ok {
		return managerNeeds(c, manager.download, manager.change)
	}
	if strings.HasPrefix(c.Name, "python") && len(c.Args) > 1 && c.Args[0] == "-m" && c.Args[1] == "pip" {
		c = script.Command{Name: "pip", Args: c.Args[2:]}
	}
	if downloads, ok := languageInstallers[c.Name]; ok && slices.Contains(downloads, firstOperand(c.Args)) {
		return installerNeeds(c)
	}
	switch {
	case slices.Contains(systemPrograms, c.Name):
		return needs{root: true, writable: true}
	case c.Name == "chown":
		return needs{chown: givesAway(c.Args)}
	case c.Name == "curl" || c.Name == "wget" || c.Name == "git":
		return needs{network: slices.ContainsFunc(c.Args, isRemote)}
	}
	return needs{}
}

func managerNeeds(c script.Command, download, change []string) needs {
	isOne := func(list []string) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return slices.Contains(list, arg) })
	}
	switch {
	case isOne(download):
		local := allLocal(c.Args, download) || slices.Contains(c.Args, "--no-network") || slices.Contains(c.Args, "--no-download")
		return needs{network: !local, root: true, writable: true}
	case isOne(change):
		return needs{root: true, writable: true}
	}
	return needs{}
}

// allLocal tells whether a command installs only files that it names by path.
func allLocal(args, subcommands []string) bool {
	files := 0
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, "-") || slices.Contains(subcommands, arg):
		case arg == "" || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, "."):
			files++ // what is only known later may be a file
		default:
			return false
		}
	}
	return files > 0
}

// givesAway reports whether chown has these arguments to make a user other than
// root the owner for certain. An owner that is only known later is not certain.
func givesAway(args []string) bool {
	for _, arg := range args {
		if arg == "" || strings.HasPrefix(arg, "--") && arg != "--recursive" {
			return false
		}
	}
	owner, _, _ := strings.Cut(firstOperand(args), ":")
	return owner != "" && owner != "root" && strings.Trim(owner, "0") != ""
}

// installerNeeds tells what an installer of a language needs. Where it installs
// to is the image's setting, so it may need no rights.
func installerNeeds(c script.Command) needs {
	has := func(names ...string) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool {
			return slices.Contains(names, strings.SplitN(arg, "=", 2)[0])
		})
	}
	need := needs{network: !has("--offline", "--prefer-offline", "--no-index", "--find-links", "--local", "--registry", "--index-url", "-i")}
	if allLocal(c.Args, languageInstallers[c.Name]) {
		need.network = false
	}
	return need
}

// firstOperand is the first argument that is not an option.
func firstOperand(args []string) string {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			return arg
		}
	}
	return ""
}

// isRemote tells whether an argument is an address on another machine.
func isRemote(arg string) bool {
	if strings.HasPrefix(arg, "git@") {
		return true
	}
	scheme, rest, ok := strings.Cut(arg, "://")
	if !ok || !slices.Contains([]string{"http", "https", "ftp", "ssh", "git"}, strings.ToLower(scheme)) {
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return !strings.HasPrefix(host, "localhost") && !strings.HasPrefix(host, "127.") && !strings.HasPrefix(host, "[::1]") &&
		!strings.Contains(host, "$")
}
