package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// write is one spending write in the append-only file.
type write struct {
	cost  int64
	spent int64 // by the key so far, this write included
}

// foreign is the value that a test puts where a state should be.
const foreign = "another's"

// account is what the append-only file says of one key.
type account struct {
	writes []write
	// hash and set are the state as the writes leave it, of which the key has one.
	hash map[string]string
	set  map[string]string // member to score
	// born is the last observed ms of the first write: a GCRA's arrival time counts from it.
	born int64
}

func (a *account) spent() int64 {
	if len(a.writes) == 0 {
		return 0
	}
	return a.writes[len(a.writes)-1].spent
}

// readAOF reads what the state keys of a namespace spent, from the append-only file in a server's
// directory: a manifest, and the files that it lists.
func readAOF(dir string, limits map[string]request) (map[string]*account, error) {
	folder := filepath.Join(dir, "appendonlydir")
	manifest, err := os.ReadFile(filepath.Join(folder, "appendonly.aof.manifest"))
	if err != nil {
		return nil, err
	}
	accounts := map[string]*account{}
	for line := range strings.Lines(string(manifest)) {
		fields := strings.Fields(line) // file <name> seq <number> type <b|i|h>
		if len(fields) != 6 || fields[0] != "file" || fields[4] != "type" {
			return nil, fmt.Errorf("manifest line %q", line)
		}
		if fields[5] == "h" {
			return nil, errors.New("the append-only file was rewritten: its history is gone")
		}
		if err := readAOFFile(filepath.Join(folder, fields[1]), accounts, limits); err != nil {
			return nil, fmt.Errorf("%s: %w", fields[1], err)
		}
	}
	return accounts, nil
}

func readAOFFile(path string, accounts map[string]*account, limits map[string]request) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader := bufio.NewReader(file)
	for {
		// A timestamp is a comment of one line.
		if next, err := reader.Peek(1); err == nil && next[0] == '#' {
			if _, err := reader.ReadString('\n'); err != nil {
				return err
			}
			continue
		}
		c, err := readCommand(reader)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(c.args) < 2 {
			continue
		}
		r, known := limits[c.args[1]]
		if !known {
			continue
		}
		a := accounts[c.args[1]]
		if a == nil {
			a = &account{hash: map[string]string{}, set: map[string]string{}}
			accounts[c.args[1]] = a
		}
		if err := a.apply(c, r); err != nil {
			return fmt.Errorf("%q: %w", c.args, err)
		}
	}
}

// apply takes one effect of a program.
func (a *account) apply(c command, r request) error {
	before := a.spent()
	var after int64
	switch c.name() {
	case "HSET":
		for i := 2; i+1 < len(c.args); i += 2 {
			a.hash[c.args[i]] = c.args[i+1]
		}
		numbers, err := a.numbers()
		if err != nil {
			return err
		}
		if after, err = a.consumed(r, numbers); err != nil {
			return err
		}
	case "ZADD":
		for i := 2; i+1 < len(c.args); i += 2 {
			a.set[c.args[i+1]] = c.args[i]
			if c.args[i] == "-1" {
				continue
			}
			sum, _, _ := strings.Cut(c.args[i+1], ":")
			var err error
			if after, err = strconv.ParseInt(sum, 10, 64); err != nil {
				return err
			}
		}
	case "ZREMRANGEBYSCORE":
		// Nothing of the log is ever dead here: what goes is the metadata.
		if c.args[2] != "-inf" || c.args[3] != "-1" {
			return errors.New("removes admissions")
		}
		for member, score := range a.set {
			if score == "-1" {
				delete(a.set, member)
			}
		}
		return nil
	case "PEXPIREAT":
		return nil
	case "SET":
		if c.args[2] != foreign {
			return errors.New("is no effect of a program")
		}
		return nil
	case "DEL":
		if len(a.hash)+len(a.set) > 0 {
			return errors.New("loses what was spent")
		}
		return nil
	default:
		return errors.New("is no effect of a program")
	}
	if after-before < 1 || after-before > maxCost {
		return fmt.Errorf("spends %d after %d", after-before, before)
	}
	a.writes = append(a.writes, write{cost: after - before, spent: after})
	return nil
}

// numbers reads the one field of a hash: its value is numbers with spaces between.
func (a *account) numbers() ([]int64, error) {
	if len(a.hash) != 1 {
		return nil, fmt.Errorf("%d fields", len(a.hash))
	}
	var numbers []int64
	for _, value := range a.hash {
		for text := range strings.SplitSeq(value, " ") {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// places says where in the numbers of an algorithm's hash stand what it counts by and the last observed
// ms, and how many numbers there are. The headers of the programs list them.
var places = map[ratelimit.Algorithm]struct{ count, last, of int }{
	ratelimit.AlgorithmFixedWindow:          {count: 1, last: 2, of: 3}, // units consumed
	ratelimit.AlgorithmSlidingWindowCounter: {count: 1, last: 4, of: 5}, // units consumed
	ratelimit.AlgorithmTokenBucket:          {count: 0, last: 2, of: 4}, // tokens left
	ratelimit.AlgorithmGCRA:                 {count: 0, last: 2, of: 4}, // arrival time
}

// consumed reads what a hash says was spent.
func (a *account) consumed(r request, numbers []int64) (int64, error) {
	place, ok := places[r.algorithm]
	if !ok || len(numbers) != place.of {
		return 0, fmt.Errorf("a hash of %d numbers", len(numbers))
	}
	count, last := numbers[place.count], numbers[place.last]
	if len(a.writes) == 0 {
		a.born = last
	}
	unit := refill(r.limit).Milliseconds()
	if last-a.born >= unit {
		return 0, errors.New("so much time has passed that a unit came back")
	}
	switch r.algorithm { //nolint:exhaustive // The others count what was consumed.
	case ratelimit.AlgorithmTokenBucket:
		return r.limit - count, nil
	case ratelimit.AlgorithmGCRA:
		if (count-a.born)%unit != 0 {
			return 0, fmt.Errorf("arrival %d is no multiple of %d after %d", count, unit, a.born)
		}
		return (count - a.born) / unit, nil
	}
	return count, nil
}

// same compares the state that the writes leave with the one that the server has.
func (a *account) same(ctx context.Context, client *redis.Client, key string) error {
	hash, set := map[string]string{}, map[string]string{}
	if len(a.set) > 0 {
		members, err := client.ZRangeWithScores(ctx, key, 0, -1).Result()
		if err != nil {
			return err
		}
		for _, m := range members {
			member, ok := m.Member.(string)
			if !ok {
				return fmt.Errorf("member %v", m.Member)
			}
			set[member] = strconv.FormatFloat(m.Score, 'f', -1, 64)
		}
	} else {
		var err error
		if hash, err = client.HGetAll(ctx, key).Result(); err != nil {
			return err
		}
	}
	if have, want := flat(hash)+flat(set), flat(a.hash)+flat(a.set); have != want {
		return fmt.Errorf("the server has %s, its append-only file %s", have, want)
	}
	return nil
}

func flat(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}
