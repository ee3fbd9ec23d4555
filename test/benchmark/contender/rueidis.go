package contender

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// Rueidis is the reference program through another client, which pipelines by itself.
func Rueidis() Contender {
	return Contender{
		Name: "EVALSHA, rueidis", Module: "github.com/redis/rueidis", Role: Reference,
		Algorithm: "a program that returns seven integers", Fixed: true,
		Note: "a client that coalesces by itself over its own number of connections; the limiter that belongs to it is not served as a module",
		Open: openRueidis,
	}
}

type rueidisEval struct {
	client rueidis.Client
	script *rueidis.Lua
	keys   [][]string
}

func openRueidis(_ context.Context, setting Setting) (Decider, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{setting.Address}, DisableCache: true})
	if err != nil {
		return nil, err
	}
	d := &rueidisEval{client: client, script: rueidis.NewLuaScript(sevenIntegers)}
	for _, name := range keyNames(setting, "rueidis") {
		d.keys = append(d.keys, []string{name})
	}
	return d, nil
}

func (d *rueidisEval) Decide(ctx context.Context, key int) (bool, error) {
	fields, err := d.script.Exec(ctx, d.client, d.keys[key], nil).AsIntSlice()
	if err != nil {
		return false, err
	}
	if len(fields) != 7 {
		return false, fmt.Errorf("%d fields, want 7", len(fields))
	}
	return fields[0] == 1, nil
}

func (d *rueidisEval) Close() error {
	d.client.Close()
	return nil
}
