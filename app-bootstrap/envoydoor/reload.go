package envoydoor

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// Reload looks at rules and certificates, and takes what is new and good. The watcher calls it; nobody
// has to.
func (d *Door) Reload() {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	problem := errors.Join(d.reloadRules(), d.reloadCertificates())
	if problem == nil {
		d.problem.Store(nil)
		return
	}
	d.problem.Store(&problem)
}

func (d *Door) reloadRules() error {
	directory, err := ReadDirectory(d.config.RulesDir)
	if err != nil {
		d.complain("rules", "envoy: the rules cannot be read, the last good ones stay", err)
		return err
	}
	if now := sum(directory.Files); now != d.tried {
		d.tried = now
		var loaded *rules.Rules
		if loaded, d.outcome = rules.Parse(directory.Files, optionsOf(d.config)); d.outcome == nil {
			if d.outcome = d.service.Replace(loaded); d.outcome == nil {
				d.tell(loaded, directory)
			}
		}
	}
	d.complain("rules", "envoy: the rules are bad, the last good ones stay", d.outcome)
	return d.outcome
}

func (d *Door) reloadCertificates() error {
	if d.certificates == nil {
		return nil
	}
	replaced, err := d.certificates.reload()
	if replaced {
		d.parts.Logger.Info("envoy: new certificates are in use")
	}
	d.complain("tls", "envoy: the certificates are bad, the last good ones stay", err)
	return err
}

// complain logs a problem when it comes and when it changes, not each time that it is met.
func (d *Door) complain(of, message string, err error) {
	if err == nil {
		delete(d.told, of)
		return
	}
	if d.told[of] == err.Error() {
		return
	}
	d.told[of] = err.Error()
	d.parts.Logger.Error(message, slog.String("error", err.Error()))
}

// tell logs what came into use.
func (d *Door) tell(loaded *rules.Rules, directory Directory) {
	policies := 0
	if set := loaded.Policies(); set != nil {
		policies = len(set.All())
	}
	d.parts.Logger.Info("envoy: rules are in use", slog.String("directory", d.config.RulesDir), slog.Int("files", len(directory.Files)),
		slog.Int("domains", loaded.Domains()), slog.Int("rules", len(loaded.All())), slog.Int("policies", policies))
	if len(directory.Ignored) > 0 {
		d.parts.Logger.Warn("envoy: the directory of rules holds what is not read as rules", slog.Any("names", directory.Ignored[:min(maxLoggedNotes, len(directory.Ignored))]))
	}
	for i, note := range loaded.Notes() {
		if i == maxLoggedNotes {
			d.parts.Logger.Warn(fmt.Sprintf("envoy: and %d more notes; edgelimit policy import shows all", len(loaded.Notes())-i))
			break
		}
		d.parts.Logger.Warn("envoy: " + note.String())
	}
}
