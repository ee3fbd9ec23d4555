package envoydoor

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watched is a directory of which something is watched. An empty name is everything in it.
type watched struct{ dir, name string }

// watcher tells when files may have changed.
type watcher struct {
	places []watched
	rescan time.Duration
	logger *slog.Logger
	events *fsnotify.Watcher // nil where the system reports nothing
	told   map[string]bool   // directories that cannot be watched, of which the log knows
}

// newWatcher watches what lies in a directory and the directory itself, which may be a link that is
// turned elsewhere; and files, each by its directory, since files are replaced rather than written.
func newWatcher(dir string, files []string, rescan time.Duration, logger *slog.Logger) *watcher {
	w := &watcher{rescan: rescan, logger: logger, told: make(map[string]bool)}
	dir = filepath.Clean(dir)
	w.places = append(w.places, watched{dir: dir}, watched{dir: filepath.Dir(dir), name: filepath.Base(dir)})
	for _, file := range files {
		if file != "" {
			w.places = append(w.places, watched{dir: filepath.Dir(file)})
		}
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("envoy: the system reports no changes of files, they are looked at again in intervals",
			slog.String("error", err.Error()), slog.Duration("interval", rescan))
		return w
	}
	w.events = events
	w.watch()
	return w
}

// watch watches all directories, also those that have become others since.
func (w *watcher) watch() {
	if w.events == nil {
		return
	}
	for _, place := range w.places {
		if place.name == "" {
			_ = w.events.Remove(place.dir) // it may be gone, or never have been there
		}
		if err := w.events.Add(place.dir); err != nil {
			if !w.told[place.dir] {
				w.told[place.dir] = true
				w.logger.Warn("envoy: changes in a directory are not reported, it is looked at again in intervals",
					slog.String("directory", place.dir), slog.String("error", err.Error()), slog.Duration("interval", w.rescan))
			}
			continue
		}
		delete(w.told, place.dir)
	}
}

// concerns reports whether an event can be of something that is watched.
func (w *watcher) concerns(event fsnotify.Event) bool {
	dir, name := filepath.Split(event.Name)
	for _, place := range w.places {
		if filepath.Clean(dir) == filepath.Clean(place.dir) && (place.name == "" || place.name == name) || filepath.Clean(event.Name) == place.dir {
			return true
		}
	}
	return false
}

// run calls changed after changes, once for those that come together, and in intervals. It returns when
// ctx ends.
func (w *watcher) run(ctx context.Context, changed func()) {
	var events chan fsnotify.Event
	var faults chan error
	if w.events != nil {
		events, faults = w.events.Events, w.events.Errors
		defer func() { _ = w.events.Close() }()
	}
	interval := time.NewTicker(w.rescan)
	defer interval.Stop()
	var soon <-chan time.Time // of the first change that was not looked at yet
	look := func() {
		soon = nil
		w.watch() // before reading: what changes after it is reported again
		changed()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events:
			if !open {
				events = nil
				continue
			}
			if soon == nil && w.concerns(event) {
				soon = time.After(shortest)
			}
		case _, open := <-faults:
			if !open {
				faults = nil
				continue
			}
			if soon == nil { // reports were lost
				soon = time.After(shortest)
			}
		case <-soon:
			look()
		case <-interval.C:
			look()
		}
	}
}
