package evidence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/lua"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources is what a package's files declare and say.
type sources struct {
	functions map[string]bool // Test, Fuzz and Run functions
	texts     map[string]bool // string literals, which name parts of tests
	calls     map[string]bool // functions that call a contract suite: function and suite
}

// parse reads all files of a package.
func parse(t *testing.T, dir string) sources {
	t.Helper()
	s := sources{functions: map[string]bool{}, texts: map[string]bool{}, calls: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Errorf("there is no package %s", dir)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			name := ""
			if ok && function.Recv == nil {
				name = function.Name.Name
				// go test runs what stands in files of tests alone.
				s.functions[name] = s.functions[name] || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(name, "Run")
			}
			ast.Inspect(declaration, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						s.texts[text] = true
					}
				case *ast.SelectorExpr:
					if suites[n.Sel.Name] > 0 {
						s.calls[name+" "+n.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return s
}

// suites are the contract suites, each with the number of places where the page says that it runs.
var suites = map[string]int{"RunEdgeRateLimit": 4, "RunCache": 6}

// suiteOf is the suite that a line begins with, "" for none.
func suiteOf(line string) string {
	for suite := range suites {
		if strings.HasPrefix(line, "`"+suite+"`") {
			return suite
		}
	}
	return ""
}

// named is a test as the page names it.
var named = regexp.MustCompile("`([a-z0-9/-]+)\\.((?:Test|Fuzz|Run)[A-Za-z0-9_]+)((?:/[A-Za-z0-9_]+)?)`")

// TestEveryNamedTestExists holds each row of docs/evidence.md to name a test, and each name to be one.
func TestEveryNamedTestExists(t *testing.T) {
	t.Parallel()
	packages := map[string]sources{}
	names := 0
	told := map[string]bool{}
	check := func(text string) (found int) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			found++
			dir, function, part := m[1], m[2], strings.TrimPrefix(m[3], "/")
			s, ok := packages[dir]
			if !ok {
				s = parse(t, dir)
				packages[dir] = s
			}
			if !s.functions[function] {
				t.Errorf("%s has no %s", dir, function)
			}
			if part != "" && !s.texts[part] {
				t.Errorf("%s.%s has no part %s", dir, function, part)
			}
		}
		quoted := strings.Count(text, "`") / 2
		if suiteOf(text) != "" {
			quoted-- // Its own name.
		}
		if found != quoted {
			t.Errorf("not a test of this form: %s", text)
		}
		return found
	}
	for line := range strings.Lines(read(t, "docs", "evidence.md")) {
		switch {
		case strings.HasPrefix(line, "| ---"), strings.Contains(line, "| held by |"), strings.Contains(line, "| held off by |"):
		case strings.HasPrefix(line, "|"):
			if found := check(line); found == 0 {
				t.Errorf("no test is named: %s", line)
			} else {
				names += found
			}
		case suiteOf(line) != "":
			// Where the suite runs: those tests really run it.
			suite := suiteOf(line)
			told[suite] = true
			if found := check(line); found != suites[suite] {
				t.Errorf("%s runs in %d places", suite, found)
			}
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				if !packages[m[1]].calls[m[2]+" "+suite] {
					t.Errorf("%s.%s does not run %s", m[1], m[2], suite)
				}
			}
		}
	}
	if len(told) != len(suites) {
		t.Errorf("the page tells where %v run, there are %v", told, suites)
	}
	if names < 100 {
		t.Errorf("%d names were read: the page has another form", names)
	}
}

// TestEveryFaultHasItsRow: the kinds of faults of the casebook are 1 to 31.
func TestEveryFaultHasItsRow(t *testing.T) {
	t.Parallel()
	page := read(t, "docs", "evidence.md")
	for n := 1; n <= 31; n++ {
		if rows := strings.Count(page, "\n| "+strconv.Itoa(n)+" | "); rows != 1 {
			t.Errorf("fault %d has %d rows", n, rows)
		}
	}
}

// TestR1IsStated holds the two places where people look to say what R1 does not claim.
func TestR1IsStated(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{
		"README.md":                          read(t, "README.md"),
		"adapter/outbound/cacheredis/doc.go": strings.ReplaceAll(read(t, "adapter", "outbound", "cacheredis", "doc.go"), "\n//", ""),
	} {
		text = strings.ToLower(strings.Join(strings.Fields(text), " "))
		for _, words := range []string{
			"r1", "qualification", "topology", "sentinel", "cluster", "security", "failover", "deduplicate",
			"losing the store's data resets limits", "business quotas do not use this port",
			"deadline is judged before sending", "cancelled on the server",
		} {
			if !strings.Contains(text, words) {
				t.Errorf("%s does not say %q", path, words)
			}
		}
	}
}

// TestOneKeyPerProgram: a program that touches one key is at home in one slot (casebook 26). That it
// makes up no key of its own, lua.TestProgramText holds.
func TestOneKeyPerProgram(t *testing.T) {
	t.Parallel()
	programs := store.RatePrograms()
	if len(programs) == 0 {
		t.Fatal("no programs")
	}
	for _, descriptor := range programs {
		program, ok := lua.Find(descriptor)
		if !ok || descriptor.Keys != 1 || strings.Contains(program.Source, "KEYS[2]") {
			t.Errorf("%s: %v, %d keys", descriptor.ID(), ok, descriptor.Keys)
		}
	}
}

// TestIndexNamesEveryDocument: docs/README.md leads to every page of docs, and to nothing else.
func TestIndexNamesEveryDocument(t *testing.T) {
	t.Parallel()
	index := read(t, "docs", "README.md")
	var pages []string
	for _, pattern := range []string{"*.md", "adr/README.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		name, err := filepath.Rel(filepath.Join(root, "docs"), page)
		if err != nil {
			t.Fatal(err)
		}
		if name != "README.md" && !strings.Contains(index, "("+filepath.ToSlash(name)+")") {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
}

// link is a relative link of Markdown.
var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// TestLinksLeadSomewhere: what the front page and the documents link to is there.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")}
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if links < 10 {
		t.Errorf("%d links were read", links)
	}
}
