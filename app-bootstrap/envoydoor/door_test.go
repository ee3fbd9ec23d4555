package envoydoor_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
)

func TestServes(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	door := open(t, settings(directory(t, 7)), parts(t, log))
	conn := dial(t, door, nil)
	response, err := ask(t.Context(), conn)
	if err != nil || response.GetOverallCode() != ratelimitv3.RateLimitResponse_OK || response.GetStatuses()[0].GetLimitRemaining() != 6 {
		t.Fatalf("%v, %v", response, err)
	}
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	if _, err = client.ShouldRateLimit(t.Context(), question(strings.Repeat("x", 64<<10))); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message beyond the bound: %v", err)
	}
	if _, err = client.ShouldRateLimit(t.Context(), question(strings.Repeat("x", 60<<10))); err != nil {
		t.Errorf("a message within the bound: %v", err)
	}
	if _, err = client.ShouldRateLimit(t.Context(), question("\xff")); err == nil {
		t.Error("text that is not UTF-8 is taken")
	}
	if !strings.Contains(log.String(), "envoy door open") || !strings.Contains(log.String(), "policies=1") {
		t.Errorf("log: %s", log)
	}
	names := services(t, door)
	for _, want := range []string{"envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"} {
		if !strings.Contains(names, want) {
			t.Errorf("reflection lists %s", names)
		}
	}
}

// services asks the door by reflection for what it serves.
func services(t *testing.T, door *envoydoor.Door) string {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(dial(t, door, nil)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		return status.Code(err).String()
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream goes on: %v", err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	return strings.Join(names, " ")
}

func TestReflectionCanBeOff(t *testing.T) {
	t.Parallel()
	cfg := settings(directory(t, 7))
	cfg.Reflection = false
	if got := services(t, open(t, cfg, parts(t, &logBuffer{}))); got != codes.Unimplemented.String() {
		t.Errorf("%s", got)
	}
}

func TestHealthFollowsTheLimiter(t *testing.T) {
	t.Parallel()
	p := parts(t, &logBuffer{})
	var ready atomic.Bool
	p.Ready = func() error {
		if ready.Load() {
			return nil
		}
		return errors.New("not yet")
	}
	door := open(t, settings(directory(t, 7)), p)
	client := grpc_health_v1.NewHealthClient(dial(t, door, nil))
	is := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for _, service := range []string{"", "envoy.service.ratelimit.v3.RateLimitService"} {
			eventually(t, want.String(), func() error {
				got, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
				if err != nil || got.GetStatus() != want {
					return fmt.Errorf("%v, %w", got, err)
				}
				return nil
			})
		}
	}
	is(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	ready.Store(true)
	is(grpc_health_v1.HealthCheckResponse_SERVING)
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
		t.Errorf("%v", err)
	}
}

// TestStopWaits: a call that is under way ends, a stream that would last for ever is ended, and new calls
// are refused.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	p := parts(t, &logBuffer{})
	hold := make(chan struct{})
	ports := &allowing{}
	ports.hold.Store(&hold)
	p.Ports = ports
	door := open(t, settings(directory(t, 7)), p)
	conn := dial(t, door, nil)
	watching, err := grpc_health_v1.NewHealthClient(conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watching.Recv(); err != nil || first.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("%v, %v", first, err)
	}
	answered := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		_, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, question("x"))
		answered <- err
	}()
	eventually(t, "a call under way", ports.holds)
	stopped := make(chan error, 1)
	go func() { stopped <- door.Stop(t.Context()) }()
	for { // the last thing that a watcher hears is NOT_SERVING, or that the stream is over
		if _, err := watching.Recv(); err != nil {
			break
		}
	}
	select {
	case err := <-stopped:
		t.Fatalf("it stopped with a call under way: %v", err)
	case err := <-answered:
		t.Fatalf("the call ended: %v", err)
	default:
	}
	close(hold)
	if err := <-answered; err != nil {
		t.Errorf("the call that was under way: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("%v", err)
	}
	if _, err := ask(t.Context(), conn); status.Code(err) != codes.Unavailable {
		t.Errorf("a call after the end: %v", err)
	}
}

func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	p := parts(t, &logBuffer{})
	hold := make(chan struct{})
	ports := &allowing{}
	ports.hold.Store(&hold)
	p.Ports = ports
	cfg := settings(directory(t, 7))
	cfg.ShutdownTimeout, cfg.DefaultDeadline = 20*time.Millisecond, time.Minute
	door := open(t, cfg, p)
	answered := make(chan error, 1)
	conn := dial(t, door, nil)
	go func() {
		_, err := ask(t.Context(), conn)
		answered <- err
	}()
	eventually(t, "a call under way", ports.holds)
	if err := door.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "still in flight") {
		t.Errorf("%v", err)
	}
	if err := <-answered; err == nil {
		t.Error("the call was answered")
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server, clients, others := newAuthority(t, "server"), newAuthority(t, "clients"), newAuthority(t, "others")
	dir := t.TempDir()
	cfg := settings(directory(t, 7))
	cert, key := server.sign(t, 100)
	cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA = write(t, dir+"/cert.pem", cert), write(t, dir+"/key.pem", key), write(t, dir+"/ca.pem", clients.pem)
	cfg.Address = "0.0.0.0:0" // with TLS, it may be another address than loopback
	log := &logBuffer{}
	door := open(t, cfg, parts(t, log))
	address := fmt.Sprintf("127.0.0.1:%d", door.Address().Port)
	// shake gives the serial number of the certificate that the door shows, or why it serves nobody.
	shake := func(roots *authority, own ...tls.Certificate) (int64, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots.pool(), Certificates: own, NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return 0, err
		}
		// A server that does not like a certificate says so after the handshake.
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return 0, err
		}
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil //nolint:forcetypeassert // the dialer's type
	}
	client := clients.pair(t, 1)
	if serial, err := shake(server, client); serial != 100 || err != nil {
		t.Fatalf("%d, %v", serial, err)
	}
	if _, err := shake(server); err == nil {
		t.Error("a client without a certificate is served")
	}
	if _, err := shake(server, others.pair(t, 2)); err == nil {
		t.Error("a client of another authority is served")
	}
	if _, err := shake(others, client); err == nil {
		t.Error("the client trusts anybody")
	}
	// A new pair. Between its two files, they are no pair, and the old one stays.
	cert, key = server.sign(t, 200)
	write(t, cfg.TLSCert, cert)
	problemHolds(t, door, "are no pair")
	if serial, err := shake(server, client); serial != 100 || err != nil {
		t.Errorf("%d, %v", serial, err)
	}
	write(t, cfg.TLSKey, key)
	noProblem(t, door)
	eventually(t, "the new certificate", func() error {
		if serial, err := shake(server, client); serial != 200 || err != nil {
			return fmt.Errorf("%d, %w", serial, err)
		}
		return nil
	})
	// Another authority of clients.
	write(t, cfg.TLSClientCA, []byte("nothing"))
	problemHolds(t, door, "ca.pem holds no PEM certificate")
	write(t, cfg.TLSClientCA, others.pem)
	noProblem(t, door)
	eventually(t, "the new authority", func() error {
		if _, err := shake(server, client); err == nil {
			return errors.New("the old one is trusted")
		}
		_, err := shake(server, others.pair(t, 3))
		return err
	})
	// And a whole call.
	by := credentials.NewTLS(&tls.Config{RootCAs: server.pool(), Certificates: []tls.Certificate{others.pair(t, 4)}, ServerName: "127.0.0.1"})
	if _, err := ask(t.Context(), dial(t, door, by)); err != nil {
		t.Errorf("%v", err)
	}
	if !strings.Contains(log.String(), "new certificates are in use") || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("log: %s", log)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := directory(t, 7)
	badPair := settings(dir)
	badPair.TLSCert, badPair.TLSKey = dir+"/rules.yaml", dir+"/rules.yaml"
	missing := settings(dir)
	missing.TLSCert, missing.TLSKey = dir+"/cert", dir+"/key"
	outside := settings(dir)
	outside.Address = "0.0.0.0:0"
	for _, c := range []struct {
		name string
		cfg  config.EnvoyRLS
		want string
	}{
		{"nothing", config.EnvoyRLS{}, "not one that package config made"},
		{"no directory", settings(dir + "/none"), "no such file"},
		{"plaintext outside", outside, "not loopback"},
		{"no pair", badPair, "are no pair"},
		{"no certificate", missing, "no such file"},
		{"a failure mode of its own", func() config.EnvoyRLS { c := settings(dir); c.Failure = 0; return c }(), "failure mode"},
	} {
		if door, err := envoydoor.New(c.cfg, parts(t, &logBuffer{})); door != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := envoydoor.New(settings(dir), envoydoor.Parts{}); err == nil {
		t.Error("a door of nothing")
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cfg := settings(dir)
	cfg.Address = taken.Addr().String()
	door, err := envoydoor.New(cfg, parts(t, &logBuffer{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := door.Start(t.Context()); err == nil {
		t.Error("an address that is taken")
	}
}
