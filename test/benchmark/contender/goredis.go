package contender

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

const goRedisModule = "github.com/redis/go-redis/v9"

// newClient is the client that every contender over go-redis but ours is given: its defaults, and as
// many connections as all others have.
func newClient(setting Setting) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: setting.Address, PoolSize: setting.PoolSize})
}

// sevenIntegers is the reference program: no call, and a reply as long as a decision's.
const sevenIntegers = "return {1, 2, 3, 4, 5, 6, 7}"

// Plain is the reference that ratios are of.
func Plain() Contender {
	return Contender{
		Name: PlainName, Module: goRedisModule, Role: Reference, Algorithm: "a program that returns seven integers", Fixed: true,
		Note: "one command for each round trip",
		Open: func(ctx context.Context, setting Setting) (Decider, error) {
			client := newClient(setting)
			return openEvalSha(ctx, setting, client, client, "plain")
		},
	}
}

// AutoPipeline is the reference that coalesces.
func AutoPipeline() Contender {
	return Contender{
		Name: AutoPipelineName, Module: goRedisModule, Role: Reference, Algorithm: "a program that returns seven integers", Fixed: true,
		Note: "the blocking face with its defaults: one ordered stream of batches, half duplex",
		Open: func(ctx context.Context, setting Setting) (Decider, error) {
			client := newClient(setting)
			options := redis.DefaultBlockingAutoPipelineOptions()
			options.FullDuplex = false
			pipeline, err := client.AutoPipelineWithOptions(options)
			if err != nil {
				return nil, errors.Join(err, client.Close())
			}
			return openEvalSha(ctx, setting, client, pipeline, "autopipeline")
		},
	}
}

type evalSha struct {
	client *redis.Client
	run    redis.Scripter
	digest string
	keys   [][]string
}

func openEvalSha(ctx context.Context, setting Setting, client *redis.Client, run redis.Scripter, owner string) (Decider, error) {
	digest, err := client.ScriptLoad(ctx, sevenIntegers).Result()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	d := &evalSha{client: client, run: run, digest: digest}
	for _, name := range keyNames(setting, owner) {
		d.keys = append(d.keys, []string{name})
	}
	return d, nil
}

func (d *evalSha) Decide(ctx context.Context, key int) (bool, error) {
	fields, err := d.run.EvalSha(ctx, d.digest, d.keys[key]).Int64Slice()
	if err != nil {
		return false, err
	}
	if len(fields) != 7 {
		return false, fmt.Errorf("%d fields, want 7", len(fields))
	}
	return fields[0] == 1, nil
}

// Close ends the client, and with it a pipeline that was made of it.
func (d *evalSha) Close() error { return d.client.Close() }
