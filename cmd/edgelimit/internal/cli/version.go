package cli

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// quietLogger is for commands that tell everything themselves.
func quietLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (t *terminal) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(t.stdout, describeBuild(info))
			return err
		},
	}
}

// describeBuild gives what a build knows of itself. A build outside of a repository, or without
// -buildvcs, knows no commit.
func describeBuild(info *debug.BuildInfo) string {
	version, commit, modified := "(devel)", "unknown", ""
	if info != nil {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				modified = " with changes"
			}
		}
	}
	return fmt.Sprintf("edgelimit %s, commit %s%s, %s %s/%s", version, commit, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
