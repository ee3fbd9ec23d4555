package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

// The keys that flags can set.
const (
	keyEnabled  = "app.rate-limit.enabled"
	keyProvider = "app.rate-limit.provider"
	keyAddress  = "app.service.http-address"
	keyTLSCert  = "app.service.tls-cert"
	keyTLSKey   = "app.service.tls-key"
	keyPlain    = "app.service.allow-plaintext"
)

// configFlag adds the flag that names the configuration.
func configFlag(command *cobra.Command) *string {
	return command.Flags().StringP("config", "c", "", "configuration file (YAML), required")
}

// load reads a configuration with an enabled limiter. Flags that were given win over the environment,
// and that over the file.
func (t *terminal) load(command *cobra.Command, file string, keys map[string]string) (config.Config, error) {
	if file == "" {
		return config.Config{}, usagef("--config FILE is required; see %s --help", command.CommandPath())
	}
	flags := make(map[string]any)
	command.Flags().Visit(func(flag *pflag.Flag) {
		if key, ok := keys[flag.Name]; ok {
			flags[key] = flag.Value.String()
		}
	})
	cfg, err := config.Load(config.Source{File: file, Environ: t.environ, Flags: flags})
	if err != nil {
		return config.Config{}, usage(err)
	}
	if !cfg.RateLimit.Enabled {
		return config.Config{}, usage(&config.Error{Faults: []config.Fault{{
			Path: keyEnabled, Problem: "is not true, want true: " + command.CommandPath() + " needs the limiter",
		}}})
	}
	return cfg, nil
}
