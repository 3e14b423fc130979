package archtest

import (
	"fmt"
	"slices"
	"strings"
)

func checkLayers(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if isTestKit(p.Path) {
			continue
		}
		from, fromRoot := layerOf(p.Path)
		if fromRoot == "" {
			wrong = append(wrong, fmt.Sprintf("%s has no layer: give it one in layers()", p.Path))
			continue
		}
		for _, i := range p.Imports {
			if to, toRoot := layerOf(i); toRoot != "" && toRoot != fromRoot && to >= from {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not below it", p.Path, i))
			}
		}
	}
	return wrong
}

// layerOf finds the layer of a package and the entry of layers that it belongs
// to, the longest that fits; "" if it is not of this tree or has no layer.
func layerOf(path string) (layer int, root string) {
	for n, entries := range layers() {
		for _, entry := range entries {
			if below(path, entry) && len(entry) > len(root) {
				layer, root = n, entry
			}
		}
	}
	return layer, root
}

func checkHomes(packages []Package) []string {
	var wrong []string
	for dependency, may := range homes() {
		for _, p := range packages {
			for _, i := range p.Imports {
				if below(i, dependency) && !within(p.Path, may) {
					wrong = append(wrong, fmt.Sprintf("%s imports %s, whose home is %s", p.Path, i, strings.Join(may, ", ")))
				}
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

func checkTestKits(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		for _, i := range p.Imports {
			ours := isTestKit(i) && isOurs(i, packages)
			if (ours || within(i, testLibraries())) && !isTestKit(p.Path) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which is for tests", p.Path, i))
			}
		}
	}
	return wrong
}

// onlyImporters allows the packages below roots to be imported by those below
// may, by each other, and by test kits.
func onlyImporters(roots []string, may ...string) func([]Package) []string {
	return func(packages []Package) []string {
		var wrong []string
		for _, p := range packages {
			if within(p.Path, roots) || within(p.Path, may) || isTestKit(p.Path) {
				continue
			}
			for _, i := range p.Imports {
				if within(i, roots) && i != spawnPackage {
					wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Path, i))
				}
			}
		}
		return wrong
	}
}

// forbid keeps packages from importing others.
func forbid(from, targets []string, except ...string) func([]Package) []string {
	return func(packages []Package) []string {
		var wrong []string
		for _, p := range packages {
			if !within(p.Path, from) || within(p.Path, except) {
				continue
			}
			for _, i := range p.Imports {
				if within(i, targets) && !within(i, from) {
					wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Path, i))
				}
			}
		}
		return wrong
	}
}

func checkGuest(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if !within(p.Path, []string{"internal/guest", "cmd/atoll-guest"}) {
			continue
		}
		for _, d := range p.Deps {
			ours := strings.HasPrefix(d, "internal/") && isOurs(d, packages)
			if within(d, guestMustNot()) || ours && !within(d, guestMay()) {
				wrong = append(wrong, fmt.Sprintf("%s links %s", p.Path, d))
			}
		}
	}
	return wrong
}

// isOurs tells this tree's internal packages from the standard library's.
func isOurs(path string, packages []Package) bool {
	return slices.ContainsFunc(packages, func(p Package) bool { return p.Path == path })
}

func checkPolicy(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if !below(p.Path, policyPackage) {
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains(policyMustNot(), i) || below(i, "os") {
				wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Path, i))
			}
		}
		for _, f := range p.Files {
			for _, use := range f.Uses {
				if slices.Contains(policyMustNot(), use) {
					wrong = append(wrong, fmt.Sprintf("%s/%s uses %s", p.Path, f.Name, use))
				}
			}
		}
	}
	return wrong
}

func checkAPI(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if !below(p.Path, "api") {
			continue
		}
		for _, i := range p.Imports {
			first, _, _ := strings.Cut(i, "/")
			if strings.Contains(first, ".") || isOurs(i, packages) && !below(i, "api") {
				wrong = append(wrong, fmt.Sprintf("%s imports %s", p.Path, i))
			}
		}
	}
	return wrong
}

func checkNames(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		for _, element := range append(strings.Split(p.Path, "/"), p.Name) {
			if slices.Contains(meaninglessNames(), element) {
				wrong = append(wrong, fmt.Sprintf("%s: the name %q says nothing", p.Path, element))
				break
			}
		}
	}
	return wrong
}

func checkDocs(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if len(p.Files) > 0 && p.Doc == "" {
			wrong = append(wrong, fmt.Sprintf("%s has no package comment", p.Path))
		}
	}
	return wrong
}

func checkInits(packages []Package) []string {
	return checkFiles(packages, func(f File) string {
		if f.Inits > 0 && !f.Generated {
			return "has an init function"
		}
		return ""
	})
}

func checkLengths(packages []Package) []string {
	return checkFiles(packages, func(f File) string {
		if f.Lines > maxLines && !f.Generated {
			return fmt.Sprintf("has %d lines, more than %d", f.Lines, maxLines)
		}
		return ""
	})
}

// checkWiring keeps logic out of the package that wires the others together.
func checkWiring(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if p.Path != wiringPackage {
			continue
		}
		ours := 0
		for _, path := range p.Imports {
			if below(path, "internal") {
				ours++
			}
		}
		if ours > maxWired {
			wrong = append(wrong, fmt.Sprintf("%s imports %d packages of this tree, more than %d", p.Path, ours, maxWired))
		}
		if n := linesOf(p); n > maxWiring {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines, more than %d", p.Path, n, maxWiring))
		}
	}
	return wrong
}

// checkSizes counts the lines of code of each package, without those below it.
func checkSizes(packages []Package) []string {
	var wrong []string
	for _, p := range packages {
		if n := linesOf(p); n > maxPackage {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines, more than %d", p.Path, n, maxPackage))
		}
	}
	return wrong
}

// linesOf counts the lines of code of a package, without tests and generated files.
func linesOf(p Package) (n int) {
	for _, f := range p.Files {
		if !f.Generated {
			n += f.Code
		}
	}
	return n
}

// checkFiles applies a check, which returns what is wrong or "", to every file.
func checkFiles(packages []Package, check func(File) string) []string {
	var wrong []string
	for _, p := range packages {
		for _, f := range p.Files {
			if text := check(f); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s/%s %s", p.Path, f.Name, text))
			}
		}
	}
	return wrong
}

// below reports whether path is root or in a directory below it.
func below(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func within(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return below(path, root) })
}
