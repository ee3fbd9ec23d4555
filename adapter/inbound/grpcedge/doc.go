// Package grpcedge puts the limiter in front of a Go service's gRPC methods: a unary and a stream
// interceptor, in the shape of the middleware of package httpedge.
//
//	limit, err := grpcedge.New(grpcedge.Config{
//		Limiter: limiter, Policies: policies, Digester: digester,
//		Policy:   grpcedge.PolicyByMethod(map[string]ratelimit.PolicyID{"/shop.v1.Orders/Place": "orders"}, "api-default"),
//		Subject:  subject, // of grpcedge.ClientAddress, APIKey, Method, or one's own
//		Deadline: 200 * time.Millisecond,
//		Headers:  grpcedge.DefaultHeaders(),
//		Mode:     grpcedge.ModeEnforce,
//	})
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(limit.Unary()), grpc.ChainStreamInterceptor(limit.Stream()))
//
// A unary call is asked for once, a stream once when it opens and not for its messages.
//
// # What a client sees
//
//	allowed                       the method's own answer
//	denied                        RESOURCE_EXHAUSTED, with google.rpc.RetryInfo
//	unavailable, indeterminate    UNAVAILABLE, with google.rpc.RetryInfo
//	incompatible                  INTERNAL
//	nobody to limit, or cost      INVALID_ARGUMENT
//	unknown policy                INTERNAL
//
// The header fields of httpedge are header metadata of the same names in lower case, retry-after
// among them. A method that is not called was not begun: retrying an UNAVAILABLE of ours repeats
// nothing of the method, but may spend the cost twice where the outcome was indeterminate.
//
// # What it is not
//
// It is no gRPC server and knows no protocol of a rate-limit service: Envoy's is another package.
//
// # Concurrency and privacy
//
// Interceptors are safe for concurrent use. An address or a key becomes a digest at once; no status,
// metadata or report holds it.
package grpcedge
