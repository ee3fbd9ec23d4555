package cli

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// terminal is what a command talks to.
type terminal struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
}

// Run runs the program with the arguments after its name and the environment as os.Environ gives it,
// and gives its exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal has its usual effect
	t := &terminal{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}
	root := t.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code, tell := codeOf(err)
	if tell {
		t.errorf("edgelimit: %v\n", err)
	}
	return code
}

func (t *terminal) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "edgelimit",
		Short:         "A distributed rate limiter: serve it, ask it, judge its policies, replay access logs",
		Args:          usageArgs(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, command.CommandPath())
	})
	root.AddCommand(t.serve(), t.check(), t.policy(), t.replay(), t.version())
	return root
}

// usageArgs makes a complaint about arguments a usage error.
func usageArgs(judge cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := judge(command, args); err != nil {
			return usagef("%w; see %s --help", err, command.CommandPath())
		}
		return nil
	}
}

// errorf writes to the error stream. A failure to do so can be told to nobody.
func (t *terminal) errorf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.stderr, format, args...)
}
