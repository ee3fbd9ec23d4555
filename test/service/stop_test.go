package service

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// TestSigtermLosesNoReply stops a service whose evaluations wait for a Redis that is paused: each gets
// its decision, the exit code is 0, and what was decided is what was answered.
func TestSigtermLosesNoReply(t *testing.T) {
	t.Parallel()
	const inFlight = 16 // as many as there are connections to Redis
	server := lanes.StartProcess(t, lanes.Options{})
	config := settings{address: server.Addr, namespace: namespace(), policies: deep}.file(t)
	s := serveReady(t, config)
	warm := burst(t, []*instance{s}, inFlight, 20*inFlight, oneSubject)

	client := newClient(t)
	server.Pause()
	var underWay, ended sync.WaitGroup
	answers := make([]answer, inFlight)
	for i := range answers {
		underWay.Add(1)
		ended.Go(func() {
			var err error
			if answers[i], err = s.evaluateInFlight(t.Context(), client, sync.OnceFunc(underWay.Done)); err != nil {
				t.Errorf("evaluation %d: %v", i, err)
			}
		})
	}
	underWay.Wait()
	s.signal(syscall.SIGTERM)
	eventually(t, "serve is stopping", func() error {
		if !strings.Contains(s.log(), "msg=stopping") {
			return fmt.Errorf("%s", s.log())
		}
		return nil
	})
	server.Resume()
	ended.Wait()
	if code := s.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log())
	}
	left := map[int64]bool{}
	for _, a := range append(warm, answers...) {
		if a.word() != "EVALUATED" || !a.Decision.Allowed {
			t.Errorf("%+v", a)
			continue
		}
		left[a.Decision.Remaining] = true
	}
	again := serveReady(t, config)
	if a := again.one(oneSubject); a.word() != "EVALUATED" || a.Decision.Remaining != int64(deepLimit-len(left)-1) {
		t.Errorf("%d decisions were told, and then %+v", len(left), a)
	}
}

// evaluateInFlight asks once, and calls back when the service is at work on it: it has asked for the
// body.
func (s *instance) evaluateInFlight(ctx context.Context, client *http.Client, atWork func()) (answer, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: atWork})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+evaluatePath, strings.NewReader(oneSubject))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return judge(response, text)
}
