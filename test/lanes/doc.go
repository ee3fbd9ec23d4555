// Package lanes gives tests real Redis servers, and never skips a test for want
// of one.
//
// A lane is a way to a server: an address that the user names, a container, a
// process of the redis-server in PATH or of Debian's package, Debian 12's Redis
// 7.0, and a redis-server whose clock a test sets. Each lane says once, on
// standard error, which server version the tests ran against. What is missing
// fails the test with the ways to provide it.
//
// A package that uses lanes hands its test run over:
//
//	func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }
//
// [Default] and [Debian70] are shared by the whole test process: tests separate
// themselves by unique namespaces and never flush. [StartProcess] and
// [StartFaketime] give one test a server of its own, which it may stop, kill,
// pause or lead through time.
//
// Every server listens on loopback alone and ends with the test process, also
// after a panic or a timeout: processes get SIGKILL from the kernel when their
// parent dies (on Linux), containers are removed by a watcher that outlives it.
//
// Environment:
//
//   - EDGELIMIT_TEST_REDIS_ADDR: host:port of a server of the user's, used as it is.
//   - EDGELIMIT_TEST_REDIS_IMAGE: the image of the container lane; nothing else
//     is tried when it is set.
//   - EDGELIMIT_TEST_REDIS_SERVER: path of the redis-server binary for processes.
//   - EDGELIMIT_TEST_NO_DOCKER=1: as if there were no Docker.
//   - EDGELIMIT_TEST_NO_SYSTEM_REDIS=1: as if no redis-server and no libfaketime
//     were installed.
//
// Functions that take a testing.TB report through it; the methods of a running
// [Process] or [ClockServer] use Errorf and so may be called from any goroutine
// of the test. Everything here is safe for concurrent use. It is not for
// production code and needs a Unix.
package lanes
