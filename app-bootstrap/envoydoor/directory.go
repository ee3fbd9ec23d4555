package envoydoor

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

// Bounds of a directory of rules.
const (
	maxFiles     = 1000
	maxFileBytes = 4 << 20
	maxDirBytes  = 32 << 20
	// maxEntries bounds what else may lie there.
	maxEntries = 10_000
)

// Directory is what a directory of rules holds.
type Directory struct {
	// Files are those of rules, in the order of their names.
	Files []rules.File
	// Ignored are the names of what is there beside them: neither *.yaml nor *.yml, or no file. Names that
	// begin with a dot are not listed.
	Ignored []string
}

// ReadDirectory reads the *.yaml and *.yml files of a directory, not of those below it. A link counts as
// what it leads to.
func ReadDirectory(dir string) (Directory, error) {
	opened, err := os.Open(dir)
	if err != nil {
		return Directory{}, fmt.Errorf("envoydoor: the rules: %w", err)
	}
	entries, err := opened.ReadDir(maxEntries + 1)
	if closed := opened.Close(); err == nil || errors.Is(err, io.EOF) {
		err = closed
	}
	if err != nil {
		return Directory{}, fmt.Errorf("envoydoor: the rules: %w", err)
	}
	if len(entries) > maxEntries {
		return Directory{}, fmt.Errorf("envoydoor: the rules: %s has more than %d entries", dir, maxEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	var found Directory
	left := int64(maxDirBytes)
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, name)
		extension := filepath.Ext(name)
		info, err := os.Stat(path)
		if err != nil {
			return Directory{}, fmt.Errorf("envoydoor: the rules: %w", err)
		}
		if extension != ".yaml" && extension != ".yml" || !info.Mode().IsRegular() {
			found.Ignored = append(found.Ignored, name)
			continue
		}
		if len(found.Files) == maxFiles {
			return Directory{}, fmt.Errorf("envoydoor: the rules: %s has more than %d files of rules", dir, maxFiles)
		}
		content, err := readFile(path, maxFileBytes)
		if err != nil {
			return Directory{}, fmt.Errorf("envoydoor: the rules: %w", err)
		}
		if left -= int64(len(content)); left < 0 {
			return Directory{}, fmt.Errorf("envoydoor: the rules: %s has more than %d bytes of rules", dir, maxDirBytes)
		}
		found.Files = append(found.Files, rules.File{Name: name, Content: content})
	}
	if len(found.Files) == 0 {
		return Directory{}, fmt.Errorf("envoydoor: the rules: %s has no file *.yaml or *.yml", dir)
	}
	return found, nil
}

// readFile gives the content of a file of at most limit bytes.
func readFile(path string, limit int64) (content []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			content, err = nil, closed
		}
	}()
	content, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return content, nil
}

// sum is a digest of names and contents: what has the same need not be read again.
func sum(files []rules.File) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		for _, part := range [][]byte{[]byte(f.Name), f.Content} {
			_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash never fails
			_, _ = h.Write(part)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// What programs that only look at rules need to name.
type (
	// Options say how rules become policies.
	Options = rules.Options
	// Rules are the rules of a directory.
	Rules = rules.Rules
)

// Differences lists how requests are answered otherwise than by envoyproxy/ratelimit.
func Differences() []rules.Difference { return rules.Differences() }

// Judge reads the rules that a configuration names, as New does, and says what is wrong with them. Where
// the door is off there is nothing to judge.
func Judge(cfg config.EnvoyRLS) error {
	if !cfg.Enabled {
		return nil
	}
	_, _, err := Import(cfg.RulesDir, optionsOf(cfg))
	return err
}

// Import reads the rules of a directory.
func Import(dir string, options Options) (*rules.Rules, Directory, error) {
	directory, err := ReadDirectory(dir)
	if err != nil {
		return nil, directory, err
	}
	loaded, err := rules.Parse(directory.Files, options)
	return loaded, directory, err
}

// shortest is the shortest time between two looks at what changed: an editor or a deployment that
// writes several files is seen as one change.
const shortest = 100 * time.Millisecond
