package envoydoor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
)

// bad are directories' files that a door must not take, with what it says of each.
var bad = []struct{ name, content, want string }{
	{"wrong unit", "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: fortnight, requests_per_unit: 1}}\n", `rules.yaml:3: descriptors[0].rate_limit.unit: is "fortnight"`},
	{"duplicate key", "domain: d\ndescriptors:\n- {key: a}\n- {key: a}\n", "rules.yaml:4: descriptors[1]: is a duplicate of rules.yaml:3: descriptors[0]"},
	{"unknown field", "domain: d\ndescriptors:\n- {key: a, limit: 1}\n", "rules.yaml:3: descriptors[0].limit: is no known key"},
	{"empty domain", "domain: ''\n", "rules.yaml:1: domain: is missing or empty"},
	{"replaces itself", "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: day, requests_per_unit: 1, name: n, replaces: [{name: n}]}}\n", "rules.yaml:3: descriptors[0].rate_limit.replaces[0].name: is \"n\""},
	{"half a file", "domain: d\ndescriptors: [{key: a", "rules.yaml:"},
	{"nothing", "", "rules.yaml: is empty"},
}

// TestBadRulesChangeNothing: each bad file is told with its place, by the log too, and the rules before it
// stay until good ones are there.
func TestBadRulesChangeNothing(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	dir := directory(t, 7)
	door := open(t, settings(dir), parts(t, log))
	conn := dial(t, door, nil)
	limitIs(t, conn, 7)
	for i, c := range bad {
		write(t, filepath.Join(dir, "rules.yaml"), []byte(c.content))
		problemHolds(t, door, c.want)
		limitIs(t, conn, uint32(7+i))
		if !strings.Contains(log.String(), "the last good ones stay") || !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), c.want) {
			t.Errorf("%s is not in the log: %s", c.name, log)
		}
		write(t, filepath.Join(dir, "rules.yaml"), ruleFile(8+i))
		limitIs(t, conn, uint32(8+i))
		noProblem(t, door)
	}
	limit := uint32(7 + len(bad))
	// What the door had stays also where the directory is gone, or empty.
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	problemHolds(t, door, "no such file")
	limitIs(t, conn, limit)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	problemHolds(t, door, "has no file")
	limitIs(t, conn, limit)
	write(t, filepath.Join(dir, "rules.yaml"), ruleFile(int(limit)))
	noProblem(t, door)
	write(t, filepath.Join(dir, "rules.yaml"), ruleFile(99))
	limitIs(t, conn, 99)
}

// TestLinks: a directory that is a link is followed when the link is turned, and so are the links in a
// directory that a ConfigMap makes.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	turn := func(link, to string) {
		t.Helper()
		if err := os.Symlink(to, link+".next"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".next", link); err != nil {
			t.Fatal(err)
		}
	}
	version := func(name string, limit int) string {
		t.Helper()
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "rules.yaml"), ruleFile(limit))
		return dir
	}
	current := filepath.Join(root, "current")
	turn(current, version("v1", 1))
	door := open(t, settings(current), parts(t, &logBuffer{}))
	conn := dial(t, door, nil)
	limitIs(t, conn, 1)
	second := version("v2", 2)
	turn(current, second)
	limitIs(t, conn, 2)
	write(t, filepath.Join(second, "rules.yaml"), ruleFile(3)) // the new directory is watched
	limitIs(t, conn, 3)

	mounted := filepath.Join(root, "mounted")
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	turn(filepath.Join(mounted, "..data"), version("..1", 11))
	if err := os.Symlink(filepath.Join("..data", "rules.yaml"), filepath.Join(mounted, "rules.yaml")); err != nil {
		t.Fatal(err)
	}
	door = open(t, settings(mounted), parts(t, &logBuffer{}))
	conn = dial(t, door, nil)
	limitIs(t, conn, 11)
	turn(filepath.Join(mounted, "..data"), version("..2", 12))
	limitIs(t, conn, 12)
}

// TestRescan: what nobody reports is seen with the interval. The directory of a file that a link leads to
// is not watched.
func TestRescan(t *testing.T) {
	t.Parallel()
	elsewhere := directory(t, 1)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(elsewhere, "rules.yaml"), filepath.Join(dir, "rules.yaml")); err != nil {
		t.Fatal(err)
	}
	cfg := settings(dir)
	cfg.Rescan = 10 * time.Millisecond
	conn := dial(t, open(t, cfg, parts(t, &logBuffer{})), nil)
	limitIs(t, conn, 1)
	write(t, filepath.Join(elsewhere, "rules.yaml"), ruleFile(2))
	limitIs(t, conn, 2)
}

// TestALogHasAProblemOnce: a problem that stays is told when it comes.
func TestALogHasAProblemOnce(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	dir := directory(t, 7)
	door := open(t, settings(dir), parts(t, log))
	write(t, filepath.Join(dir, "rules.yaml"), []byte("domain: 5.5\n"))
	problemHolds(t, door, "rules.yaml:1: domain")
	for range 5 {
		door.Reload()
	}
	if n := strings.Count(log.String(), "the last good ones stay"); n != 1 {
		t.Errorf("%d times in %s", n, log)
	}
	if door.Problem() == nil {
		t.Error("the problem is forgotten")
	}
}

func TestReadDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"b.yaml": "2", "a.yml": "1", "c.yaml~": "x", "README": "x", ".hidden.yaml": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "below.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := envoydoor.ReadDirectory(dir)
	if err != nil || len(found.Files) != 2 || found.Files[0].Name != "a.yml" || string(found.Files[1].Content) != "2" ||
		strings.Join(found.Ignored, " ") != "README below.yaml c.yaml~" {
		t.Errorf("%+v, %v", found, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.yaml"), make([]byte, 4<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := envoydoor.ReadDirectory(dir); err == nil || !strings.Contains(err.Error(), "more than 4194304 bytes") {
		t.Errorf("a file beyond the bound: %v", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := envoydoor.ReadDirectory(dir); err == nil {
		t.Error("a link to nowhere is passed over")
	}
	if _, err := envoydoor.ReadDirectory(filepath.Join(dir, "README")); err == nil {
		t.Error("a file is a directory")
	}
}
