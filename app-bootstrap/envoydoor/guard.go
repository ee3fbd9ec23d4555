package envoydoor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// recovering turns a panic into an error of its call. The log gets its type and the stack, never what it
// holds.
func recovering(logger *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
		defer func() {
			if p := recover(); p != nil {
				logger.ErrorContext(ctx, "envoy: panic", slog.String("method", info.FullMethod),
					slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
				response, err = nil, status.Error(codes.Internal, "internal error")
			}
		}()
		return handler(ctx, request)
	}
}

// ending ends streams, which can last for ever, when the door stops.
func ending(stopping context.Context) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, cancel := context.WithCancel(stream.Context())
		defer cancel()
		unhook := context.AfterFunc(stopping, cancel)
		defer unhook()
		return handler(service, &endingStream{ServerStream: stream, ctx: ctx})
	}
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context ends with the call or with the door.
func (s *endingStream) Context() context.Context { return s.ctx }
