package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/service"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// readyPoll is how often readiness is looked at.
const readyPoll = 5 * time.Millisecond

// question is what check asks.
type question struct {
	policy    string
	subject   string
	cost      int64
	asJSON    bool
	readyWait time.Duration
}

func (t *terminal) check() *cobra.Command {
	command := &cobra.Command{
		Use:   "check --config FILE --subject SUBJECT [--policy POLICY] [--cost N]",
		Short: "Evaluate once and say what came of it",
		Long: `Evaluate once under a policy and say what came of it. An allowed cost is spent.

Exit code 0: allowed. 3: denied. 4: unavailable or indeterminate. 5: incompatible. 2: usage.

--subject - reads the subject from the standard input, so that it stands in no list of processes. A
newline at its end is not part of it.`,
		Args: usageArgs(cobra.NoArgs),
	}
	file := configFlag(command)
	var q question
	flags := command.Flags()
	flags.StringVarP(&q.policy, "policy", "p", "", "policy ID (default: the configuration's default policy)")
	flags.StringVarP(&q.subject, "subject", "s", "", "who is limited, such as user:42, or - for the standard input; required")
	flags.Int64Var(&q.cost, "cost", 1, "cost of the request")
	flags.BoolVar(&q.asJSON, "json", false, "print the outcome as the JSON API gives it")
	flags.DurationVar(&q.readyWait, "ready-timeout", 5*time.Second, "how long to wait until the provider is ready")
	command.RunE = func(command *cobra.Command, _ []string) error {
		cfg, err := t.load(command, *file, nil)
		if err != nil {
			return err
		}
		if q.subject, err = t.subject(q.subject); err != nil {
			return err
		}
		if q.policy == "" {
			q.policy = string(cfg.RateLimit.DefaultPolicy)
		}
		return t.runCheck(command.Context(), cfg, q)
	}
	return command
}

// subject gives the subject that was meant.
func (t *terminal) subject(flag string) (string, error) {
	if flag == "-" {
		content, err := io.ReadAll(io.LimitReader(t.stdin, ratelimit.MaxIdentityBytes+3))
		if err != nil {
			return "", fmt.Errorf("read the subject: %w", err)
		}
		flag = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	}
	if flag == "" || len(flag) > ratelimit.MaxIdentityBytes {
		return "", usagef("--subject has %d bytes, want 1..%d", len(flag), ratelimit.MaxIdentityBytes)
	}
	return flag, nil
}

func (t *terminal) runCheck(ctx context.Context, cfg config.Config, q question) (err error) {
	var parts struct {
		fx.In

		Limiter   ratelimit.EdgeRateLimitPort
		Digester  *ratelimit.SubjectDigester
		Readiness composition.Readiness
	}
	app := fx.New(fx.Supply(quietLogger()), fx.NopLogger, composition.Module(cfg.RateLimit), fx.Populate(&parts))
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopAllowance)
		defer cancel()
		err = also(err, app.Stop(stopping))
	}()
	if err := awaitReady(ctx, parts.Readiness, q.readyWait); err != nil {
		t.errorf("note: not ready after %v: %v\n", q.readyWait, err)
	}
	digest, err := parts.Digester.Digest(q.subject)
	if err != nil {
		return usage(err)
	}
	outcome, err := parts.Limiter.Evaluate(ctx, ratelimit.RateLimitRequest{
		PolicyID: ratelimit.PolicyID(q.policy), Subject: digest, Cost: q.cost, Deadline: time.Now().Add(cfg.Service.DefaultDeadline),
	})
	var invalid *ratelimit.InvalidRequestError
	if errors.As(err, &invalid) {
		return usagef("%v: %s", invalid.Fault, invalid.Reason)
	}
	if err != nil {
		return err
	}
	if cfg.RateLimit.Provider == config.ProviderMemory {
		t.errorf("note: the memory provider starts afresh with each run, so this check sees nothing of other requests\n")
	}
	if err := t.printOutcome(outcome, q.asJSON); err != nil {
		return err
	}
	return silent(outcomeCode(outcome))
}

// awaitReady gives nil once the provider is ready, or the reason why it is not at the end.
func awaitReady(ctx context.Context, readiness composition.Readiness, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := readiness.Ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// outcomeCode gives the exit code of an outcome.
func outcomeCode(outcome ratelimit.Outcome) int {
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		if o.Decision.Allowed {
			return ExitOK
		}
		return ExitDenied
	case ratelimit.Unavailable, ratelimit.Indeterminate:
		return ExitNotEvaluated
	case ratelimit.Incompatible:
		return ExitIncompatible
	default:
		return ExitFailure
	}
}

func (t *terminal) printOutcome(outcome ratelimit.Outcome, asJSON bool) error {
	shape, ok := service.Present(outcome)
	if !ok {
		return errors.New("the provider gave no outcome")
	}
	if asJSON {
		encoder := json.NewEncoder(t.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(shape)
	}
	_, err := fmt.Fprintln(t.stdout, describe(outcome))
	return err
}

// describe says an outcome in one line.
func describe(outcome ratelimit.Outcome) string {
	switch o := outcome.(type) {
	case ratelimit.Evaluated:
		d := o.Decision
		word, retry := "allowed", ""
		if !d.Allowed {
			word, retry = "denied", fmt.Sprintf("retry after %v, ", d.RetryAfter)
		}
		return fmt.Sprintf("%s: %d of %d left under policy %s (revision %d); %sfull again at %s",
			word, d.Remaining, d.Limit, d.PolicyID, d.PolicyRevision, retry, d.ResetAt.UTC().Format(time.RFC3339Nano))
	case ratelimit.Unavailable:
		return fmt.Sprintf("unavailable (%v): nothing was decided or spent under policy %s; retry after %v", o.Category, o.PolicyID, o.RetryAfter)
	case ratelimit.Indeterminate:
		return fmt.Sprintf("indeterminate: it is not known whether the cost was spent under policy %s; retry after %v", o.PolicyID, o.RetryAfter)
	case ratelimit.Incompatible:
		return fmt.Sprintf("incompatible (%v): the store and this program do not fit together under policy %s; somebody has to look", o.Category, o.PolicyID)
	default:
		return "no outcome"
	}
}
