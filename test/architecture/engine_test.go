package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// listed is what go list -json says of a package, as far as rules need it.
type listed struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

// violation is an import that a rule forbids.
type violation struct {
	importer, imported string
	rule               rule
}

func (v violation) String() string {
	return fmt.Sprintf("%s imports %s\n\trule: %s\n\twhy:  %s", v.importer, v.imported, v.rule.name, v.rule.why)
}

// check applies rules to packages; the list holds their dependencies too.
func check(packages []listed, rules []rule) []violation {
	standard := map[string]bool{"C": true, "unsafe": true}
	for _, p := range packages {
		if p.Standard {
			standard[p.ImportPath] = true
		}
	}
	var found []violation
	for _, r := range rules {
		for _, p := range packages {
			if !matchesAny(p.ImportPath, r.who, p.ImportPath, standard) ||
				matchesAny(p.ImportPath, r.except, p.ImportPath, standard) {
				continue
			}
			for _, imported := range importsOf(p, r) {
				if matchesAny(imported, r.forbid, p.ImportPath, standard) &&
					!matchesAny(imported, r.allow, p.ImportPath, standard) {
					found = append(found, violation{importer: p.ImportPath, imported: imported, rule: r})
				}
			}
		}
	}
	return found
}

func importsOf(p listed, r rule) []string {
	var imports []string
	switch {
	case r.scope == tests:
		imports = slices.Concat(p.TestImports, p.XTestImports)
	case r.transitive:
		imports = slices.Clone(p.Deps)
	default:
		imports = slices.Clone(p.Imports)
	}
	slices.Sort(imports)
	return slices.Compact(imports)
}

func matchesAny(path string, patterns []string, importer string, standard map[string]bool) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return matches(path, pattern, importer, standard)
	})
}

func matches(path, pattern, importer string, standard map[string]bool) bool {
	switch pattern {
	case "*":
		return true
	case "std":
		return standard[path]
	case "self":
		pattern = adapterOf(importer) + "/..."
	}
	if relative, ok := strings.CutPrefix(pattern, "./"); ok {
		pattern = module + "/" + relative
	}
	root, below := strings.CutSuffix(pattern, "/...")
	return path == root || below && strings.HasPrefix(path, root+"/")
}

// adapterOf is adapter/<direction>/<name> of a package in it.
func adapterOf(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	return module + "/" + strings.Join(parts[:min(3, len(parts))], "/")
}
