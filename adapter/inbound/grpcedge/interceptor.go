package grpcedge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/edgelimit/edgelimit/adapter/inbound/internal/edge"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Mode says whether a verdict counts.
type Mode uint8

// The modes. The zero value is invalid.
const (
	ModeInvalid Mode = iota
	// ModeEnforce lets pass what is allowed.
	ModeEnforce
	// ModeShadow asks, spends and reports, and lets every call pass. The metadata edgelimit-shadow
	// stands in the place of all others.
	ModeShadow
)

// Config is what the interceptors are made of. Every field is required, but where it says so.
type Config struct {
	Limiter ratelimit.EdgeRateLimitPort
	// Policies are those of the limiter: the header metadata tells of them.
	Policies *ratelimit.PolicySet
	// Digester turns subjects into digests.
	Digester *ratelimit.SubjectDigester
	Policy   PolicyFunc
	Subject  SubjectFunc
	// Cost is what a call costs, in units of its policy's limit. Nil is 1.
	Cost func(ctx context.Context, method string) int64
	// Skip lets calls pass unasked and uncounted, such as health checks. Nil skips none.
	Skip func(ctx context.Context, method string) bool
	// Deadline is how long a decision is waited for: whole milliseconds, 1 ms..10 min. A call whose own
	// deadline is earlier waits no longer than that.
	Deadline time.Duration
	// Headers are the styles of header fields. None gives none but retry-after.
	Headers []HeaderStyle
	Mode    Mode
	// Observe is told of every question, before the call goes on. Nil tells nobody.
	Observe func(ctx context.Context, method string, report Report)
}

// Interceptors stand in front of a server's methods.
type Interceptors struct {
	asker  edge.Asker
	config Config
	fields *edge.Fields
}

// New makes interceptors, or says everything that is wrong with their configuration.
func New(config Config) (*Interceptors, error) {
	asker := edge.Asker{Limiter: config.Limiter, Policies: config.Policies, Digester: config.Digester, Deadline: config.Deadline}
	faults := asker.Check()
	if config.Policy == nil {
		faults = append(faults, errors.New("field Policy is missing"))
	}
	if config.Subject == nil {
		faults = append(faults, errors.New("field Subject is missing"))
	}
	if config.Mode != ModeEnforce && config.Mode != ModeShadow {
		faults = append(faults, errors.New("field Mode is neither ModeEnforce nor ModeShadow"))
	}
	var fields *edge.Fields
	if config.Policies != nil {
		var err error
		fields, err = edge.NewFields(config.Policies, config.Headers)
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("grpcedge: %w", err)
	}
	return &Interceptors{asker: asker, config: config, fields: fields}, nil
}

// Unary is the interceptor of unary methods.
func (i *Interceptors) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		header, err := i.ask(ctx, info.FullMethod)
		if len(header) > 0 {
			// It fails where the header has gone already, which an interceptor in front may have done: then
			// the fields are lost, and the verdict is not.
			_ = grpc.SetHeader(ctx, header)
		}
		if err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}
}

// Stream is the interceptor of streams. It asks once, when the stream opens.
func (i *Interceptors) Stream() grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		header, err := i.ask(stream.Context(), info.FullMethod)
		if len(header) > 0 {
			_ = stream.SetHeader(header) // as in Unary
		}
		if err != nil {
			return err
		}
		return handler(service, stream)
	}
}

// ask evaluates once and gives the header metadata, and the error of a call that does not pass.
func (i *Interceptors) ask(ctx context.Context, method string) (metadata.MD, error) {
	if i.config.Skip != nil && i.config.Skip(ctx, method) {
		return nil, nil
	}
	cost := int64(1)
	if i.config.Cost != nil {
		cost = i.config.Cost(ctx, method)
	}
	subject, unidentified := i.config.Subject(ctx, method)
	report := i.asker.Ask(ctx, i.config.Policy(ctx, method), subject, unidentified, cost)
	report.Shadow = i.config.Mode == ModeShadow
	if i.config.Observe != nil {
		i.config.Observe(ctx, method, report)
	}
	var scratch [edge.MaxFields]edge.Field
	var header metadata.MD
	if fields := i.fields.Append(scratch[:0], report, time.Now()); len(fields) > 0 {
		header = make(metadata.MD, len(fields))
		for _, f := range fields {
			header[strings.ToLower(f.Name)] = []string{f.Value}
		}
	}
	if report.Passes() {
		return header, nil
	}
	return header, failure(report)
}

// failure gives the status of a report that does not pass.
func failure(report Report) error {
	code, message := codes.Internal, "edgelimit: the limiter failed"
	switch report.Verdict {
	case edge.VerdictDeny:
		code, message = codes.ResourceExhausted, "edgelimit: the limit is reached"
	case edge.VerdictUnavailable:
		code, message = codes.Unavailable, "edgelimit: the limiter cannot decide, so the call stays outside"
	case edge.VerdictIndeterminate:
		code, message = codes.Unavailable, "edgelimit: the limiter did not hear what was decided, so the call stays outside"
	case edge.VerdictIncompatible:
		message = "edgelimit: the limiter and its store do not fit together"
	case edge.VerdictRefused:
		message = "edgelimit: " + report.Refusal.String() + ": " + report.Reason
		switch report.Refusal {
		case edge.RefusalSubjectMissing, edge.RefusalSubjectMalformed, edge.RefusalCost:
			code = codes.InvalidArgument
		case edge.RefusalNone, edge.RefusalPolicyUnknown, edge.RefusalInternal:
		}
	case edge.VerdictAllow:
	}
	s := status.New(code, message)
	if report.RetryAfter > 0 {
		if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(report.RetryAfter)}); err == nil {
			s = detailed
		}
	}
	return s.Err()
}
