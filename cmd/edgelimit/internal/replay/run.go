package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Simulator evaluates at a time that the caller gives.
type Simulator interface {
	EvaluateAt(ctx context.Context, at time.Time, request ratelimit.RateLimitRequest) (ratelimit.Outcome, error)
}

// evaluationTime is how long one evaluation may take. It is above the greatest command timeout, with
// less than which left a provider sends nothing.
const evaluationTime = 20 * time.Second

// cost is what each request costs.
const cost = 1

// Log is one access log.
type Log struct {
	Name   string
	Reader io.Reader
}

// Config says what to replay. Every field is required, but where it says so.
type Config struct {
	Simulator Simulator
	// Digest turns a subject of 1..ratelimit.MaxIdentityBytes into its digest.
	Digest func(subject string) (ratelimit.SubjectDigest, error)
	// Policies are evaluated in this order.
	Policies []*ratelimit.RateLimitPolicy
	Subject  accesslog.SubjectField
	Bounds   accesslog.Bounds
	// Logs are merged by time. Each is sorted by itself, and Bounds.Lines is shared among them.
	Logs []Log
	// Out gets one JSON object a line for each evaluation. Nil wants none.
	Out io.Writer
}

// Run replays. The summary is meaningful also where there is an error.
func Run(ctx context.Context, config Config) (Summary, error) {
	r := &run{Config: config, summary: Summary{SubjectField: config.Subject.String()}}
	for _, policy := range config.Policies {
		r.tallies = append(r.tallies, newTally(policy))
	}
	if config.Out != nil {
		r.out = newWriter(config.Out, config.Logs)
	}
	err := r.all(ctx)
	for _, t := range r.tallies {
		r.summary.Policies = append(r.summary.Policies, t.summary())
	}
	return r.summary, err
}

type run struct {
	Config
	summary Summary
	tallies []*tally
	out     *writer
}

func (r *run) all(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.out.flush()) }()
	streams := make([]accesslog.Stream[ratelimit.SubjectDigest], len(r.Logs))
	bounds := r.Bounds
	bounds.Lines = max(1, bounds.Lines/max(1, len(r.Logs)))
	for i, log := range r.Logs {
		reader, err := accesslog.NewReader(log.Reader)
		if err != nil {
			return fmt.Errorf("%s: %w", log.Name, err)
		}
		streams[i] = accesslog.Sorted(r.subjects(log.Name, reader), bounds, func(accesslog.Item[ratelimit.SubjectDigest]) {
			r.summary.Late++
		})
	}
	next := accesslog.Merge(streams...)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		item, err := next()
		if item.Line > 0 { // a merged stream can give an item together with the error of what follows
			if err := r.evaluate(ctx, item); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// subjects reads a log's lines up to their subjects' digests.
func (r *run) subjects(name string, reader *accesslog.Reader) accesslog.Stream[ratelimit.SubjectDigest] {
	return func() (accesslog.Item[ratelimit.SubjectDigest], error) {
		for {
			entry, line, unparsed, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return accesslog.Item[ratelimit.SubjectDigest]{}, io.EOF
			}
			if line > 0 {
				r.summary.Lines++
			}
			if unparsed != nil {
				r.summary.unparsed(name, unparsed)
			}
			if err != nil {
				return accesslog.Item[ratelimit.SubjectDigest]{}, fmt.Errorf("%s: %w", name, err)
			}
			if unparsed != nil {
				continue
			}
			subject := r.Subject.Of(entry)
			if subject == "" {
				r.summary.WithoutSubject++
				continue
			}
			digest, err := r.Digest(subject)
			if err != nil {
				return accesslog.Item[ratelimit.SubjectDigest]{}, fmt.Errorf("%s: line %d: %w", name, line, err)
			}
			return accesslog.Item[ratelimit.SubjectDigest]{Millis: entry.Time.UnixMilli(), Line: line, Value: digest}, nil
		}
	}
}

// evaluate asks every policy about one request.
func (r *run) evaluate(ctx context.Context, item accesslog.Item[ratelimit.SubjectDigest]) error {
	if r.summary.Requests == 0 {
		r.summary.FromMillis = item.Millis
	}
	r.summary.Requests++
	r.summary.ToMillis = item.Millis
	for _, t := range r.tallies {
		outcome, err := r.Simulator.EvaluateAt(ctx, time.UnixMilli(item.Millis), ratelimit.RateLimitRequest{
			PolicyID: t.policy.ID(), Subject: item.Value, Cost: cost, Deadline: time.Now().Add(evaluationTime),
		})
		if err != nil {
			return fmt.Errorf("policy %s: %w", t.policy.ID(), err)
		}
		if err := ctx.Err(); err != nil {
			return err // what came back is no longer about the log
		}
		t.count(item.Millis, item.Value, outcome)
		if err := r.out.write(item, t.policy.ID(), outcome); err != nil {
			return err
		}
	}
	return nil
}
