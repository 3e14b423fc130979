package rootfs

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// entry is one generated file, directory or link. Parents come first.
type entry struct {
	path string // without the leading slash
	mode fs.FileMode
	data string // of a file, or the target of a link
}

func dir(path string) entry        { return entry{path: path, mode: fs.ModeDir | 0o755} }
func file(path, data string) entry { return entry{path: path, mode: 0o644, data: data} }
func link(path, to string) entry   { return entry{path: path, mode: fs.ModeSymlink | 0o777, data: to} }
func stickyDir(path string) entry  { return entry{path: path, mode: fs.ModeDir | fs.ModeSticky | 0o777} }
func (e entry) line() string       { return fmt.Sprintf("%q %v %q\n", e.path, e.mode, e.data) }

// networkFiles are those that describe the machine rather than its programs.
// They cover an image's own, as with every container engine.
func networkFiles(id Identity) []entry {
	hostname := cmp.Or(id.Hostname, "sandbox")
	return []entry{
		dir("etc"),
		file("etc/hostname", hostname+"\n"),
		file("etc/hosts", hosts(hostname, id.Hosts)),
		file("etc/resolv.conf", resolvers(id.DNS)),
	}
}

// imageFiles are what covers every image: besides the files above, the
// directories that a kernel's file systems are mounted on.
func imageFiles(id Identity) []entry {
	return append(networkFiles(id), dir("dev"), dir("proc"), dir("sys"))
}

// hosts is the table of names; extra entries have the form "name:address".
func hosts(hostname string, extra []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n", hostname)
	for _, e := range extra {
		if name, address, ok := strings.Cut(e, ":"); ok {
			fmt.Fprintf(&b, "%s\t%s\n", address, name)
		}
	}
	return b.String()
}

func resolvers(servers []string) string {
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "nameserver %s\n", s)
	}
	return b.String()
}

// userFiles are the user database of a root that has none of its own: root,
// nobody, and the user of the sandbox.
func userFiles(id Identity) []entry {
	home := cmp.Or(id.Home, "/")
	passwd := []string{"root:x:0:0:root:/root:/bin/sh", "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"}
	group := []string{"root:x:0:", "nogroup:x:65534:"}
	if id.UID != 0 && id.UID != 65534 {
		passwd = append(passwd, fmt.Sprintf("sandbox:x:%d:%d:sandbox:%s:/bin/sh", id.UID, id.GID, home))
	}
	if id.GID != 0 && id.GID != 65534 {
		group = append(group, fmt.Sprintf("sandbox:x:%d:", id.GID))
	}
	return []entry{
		file("etc/passwd", strings.Join(passwd, "\n")+"\n"),
		file("etc/group", strings.Join(group, "\n")+"\n"),
		file("etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\n"),
		file("etc/shells", "/bin/sh\n/bin/bash\n"),
	}
}

// skeleton are the directories and links that every program expects, where no
// image brings them.
func skeleton() []entry {
	return slices.Concat(
		[]entry{dir("dev"), dir("proc"), dir("sys"), dir("home"), dir("mnt"), dir("opt"), dir("root"), dir("run"), dir("srv"), stickyDir("tmp")},
		[]entry{dir("var"), dir("var/cache"), dir("var/lib"), dir("var/log"), stickyDir("var/tmp"), link("var/run", "../run"), link("var/lock", "../run/lock")},
		[]entry{link("etc/mtab", "../proc/self/mounts"), link("etc/os-release", "../usr/lib/os-release")},
	)
}
