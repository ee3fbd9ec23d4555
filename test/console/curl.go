package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
)

// Curl does what curl does with the few options that documents use (-s, -i, -o /dev/null, -H, -d) and
// one URL.
func Curl(ctx context.Context, args []string, stdout io.Writer) error {
	method, body, url, headers := http.MethodGet, "", "", http.Header{}
	showHead, discard := false, false
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		value := ""
		switch word {
		case "-o", "-H", "-d":
			if len(args) == 0 {
				return fmt.Errorf("curl: %s needs a value", word)
			}
			value, args = args[0], args[1:]
		}
		switch {
		case word == "-s":
		case word == "-i":
			showHead = true
		case word == "-o" && value == "/dev/null":
			discard = true
		case word == "-H":
			name, content, _ := strings.Cut(value, ": ")
			headers.Set(name, content)
		case word == "-d":
			method, body = http.MethodPost, value
			if headers.Get("Content-Type") == "" {
				headers.Set("Content-Type", "application/x-www-form-urlencoded")
			}
		case strings.HasPrefix(word, "http://") && url == "":
			url = word
		default:
			return fmt.Errorf("curl: no %q here", word)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = headers
	// The connection is kept until the end, as curl does: a server says so in its answer.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if discard {
		stdout = io.Discard
	}
	if showHead {
		head, err := httputil.DumpResponse(response, false)
		if err != nil {
			return err
		}
		if _, err := stdout.Write(head); err != nil {
			return err
		}
	}
	_, err = io.Copy(stdout, response.Body)
	return err
}

// CurlMain is Curl as a program, and gives its exit code.
func CurlMain(args []string, stdout, stderr io.Writer) int {
	if err := Curl(context.Background(), args, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
