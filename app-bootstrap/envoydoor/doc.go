// Package envoydoor puts adapter/inbound/envoyrls behind a gRPC server: the rules of a directory, TLS,
// health, reflection, and reloading of what changes.
//
//	fx.New(composition.Module(cfg.RateLimit), envoydoor.Module(cfg.EnvoyRLS))
//
// [Module] is for fx; [Door] is the same without it. [ReadDirectory] reads rules for programs that
// only look at them.
//
// # Reloading
//
// The directory of rules and the files of TLS are watched, and looked at again after each
// rescan-interval, since network file systems report nothing. What changed is read as a whole. Good
// rules replace the ones before them at once and for all of what follows; a call that is under way ends
// under those that it began with. Bad ones change nothing: the log says every fault with file and path,
// and [Door.Problem] gives it until good ones are there. The same holds for certificates. A directory
// without a file of rules is a fault, so that one that is being replaced does not let everything
// through.
//
// # What it is not
//
// It decides nothing, reads no configuration and handles no signals.
//
// # Start and stop
//
// New reads rules and certificates, so that bad ones are an error before anything listens. Start
// listens and returns; what serves then runs in the background, and fails through [Door.Failed]. Stop
// turns health to NOT_SERVING, closes the listener, and waits for calls in flight until the shutdown
// timeout or its context ends; what is left then is cut off, and an error says so.
//
// # Concurrency
//
// A Door is safe for concurrent use; it starts once and stops once.
package envoydoor
