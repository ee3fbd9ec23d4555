package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/cli"
)

// lockedBuffer is a stream that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var listening = regexp.MustCompile(`listening.*?address"?[=:]"?([0-9.:\[\]]+)`)

// serving runs serve on a free port. Its stop sends SIGTERM, which ends every serve of the process,
// so tests that serve do not run in parallel.
func serving(t *testing.T, environ []string, args ...string) (string, *lockedBuffer, func() int) {
	t.Helper()
	log, address := &lockedBuffer{}, ""
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(append([]string{"serve", "--http-address", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, log, environ)
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if m := listening.FindStringSubmatch(log.String()); m != nil {
			address = m[1]
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("serve ended with %d: %s", code, log)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("serve does not listen: %s", log)
		}
	}
	var once sync.Once
	code := -1
	stop := func() int {
		once.Do(func() {
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			code = <-ended
		})
		return code
	}
	t.Cleanup(func() { stop() })
	return address, log, stop
}

// client keeps no connection, so that nothing is left when a test ends.
func client() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

func TestServeAndStop(t *testing.T) {
	address, log, stop := serving(t, []string{"EDGELIMIT_APP__SERVICE__LOG_FORMAT=json"}, "--config", serviceExample)
	response, err := client().Post("http://"+address+"/v1/rate-limit/evaluate", "application/json", strings.NewReader(`{"policyId":"login","subject":"user:42"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != 200 || !strings.Contains(string(body), `"remaining":4`) {
		t.Errorf("%v %d %s", err, response.StatusCode, body)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
	if strings.Contains(log.String(), "user:42") || !strings.Contains(log.String(), `"msg":"stopped"`) {
		t.Errorf("log: %s", log)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("still listening")
	}
}

// TestServeLetsARequestInFlightEnd holds a request open by half its body while SIGTERM comes.
func TestServeLetsARequestInFlightEnd(t *testing.T) {
	address, log, stop := serving(t, nil, "--config", serviceExample)
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, "POST /v1/rate-limit/evaluate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n")) // the handler reads the body: the request is in flight
	if _, err := io.ReadFull(connection, head); err != nil || !strings.Contains(string(head), "100 Continue") {
		t.Fatalf("%v %q", err, head)
	}
	ended := make(chan int, 1)
	go func() { ended <- stop() }()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), "msg=stopping"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("SIGTERM has no effect")
		}
	}
	if _, err := io.WriteString(connection, `{"subject":"a"}`); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(connection)
	if err != nil || !strings.Contains(string(answer), `"outcome":"EVALUATED"`) {
		t.Errorf("%v %q", err, answer)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
}

func TestServeWithTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile := write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	keyFile := write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	// Beyond loopback it is TLS that is asked for; the flag of serving comes first and this one wins.
	_, log, stop := serving(t, nil, "--config", serviceExample, "--http-address", "0.0.0.0:0", "--tls-cert", certFile, "--tls-key", keyFile)
	m := regexp.MustCompile(`address=\[::\]:(\d+)`).FindStringSubmatch(log.String())
	if m == nil {
		m = regexp.MustCompile(`address=0\.0\.0\.0:(\d+)`).FindStringSubmatch(log.String())
	}
	if m == nil {
		t.Fatalf("log: %s", log)
	}
	roots := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(parsed)
	secure := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	response, err := secure.Get("https://127.0.0.1:" + m[1] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 200 || !strings.Contains(log.String(), "tls=true") {
		t.Errorf("%d, log: %s", response.StatusCode, log)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, log)
	}
}

// TestServeWithoutRedis holds that the service runs without its store, and says so.
func TestServeWithoutRedis(t *testing.T) {
	address, _, stop := serving(t, []string{secretVariable, "EDGELIMIT_APP__RATE_LIMIT__REDIS__ADDRESS=127.0.0.1:1"}, "--config", redisExample)
	get := func(path string) (int, string) {
		response, err := client().Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if status, body := get("/readyz"); status != 503 || !strings.Contains(body, `"status":"not-ready","reason":"`) {
		t.Errorf("readyz %d %s", status, body)
	}
	if status, body := get("/livez"); status != 200 {
		t.Errorf("livez %d %s", status, body)
	}
	response, err := client().Post("http://"+address+"/v1/rate-limit/evaluate", "application/json", strings.NewReader(`{"subject":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != 503 || response.Header.Get("Retry-After") != "1" ||
		string(body) != `{"outcome":"UNAVAILABLE","policyId":"api-default","category":"NOT_READY","retryAfterMillis":1000}`+"\n" {
		t.Errorf("%v %d %v %s", err, response.StatusCode, response.Header, body)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestServeOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	run(t, "", nil, "serve", "--config", serviceExample, "--http-address", taken.Addr().String()).expect(t, 1, "", "address already in use")
}
