package architecture

// module is the path that patterns below are written relative to.
const module = "github.com/edgelimit/edgelimit"

// rule says what the packages of one room may import.
//
// A pattern is an import path, or one that ends in "/..." for a path and all
// below it. Patterns that begin with "./" are relative to the module. "std" is
// the standard library, "*" anything, and "self" the adapter that the importing
// package belongs to (adapter/outbound/memory and all below it).
type rule struct {
	name string
	// who are the importing packages, less those in except.
	who, except []string
	// forbid are the imports that break the rule, less those in allow.
	forbid, allow []string
	// why is printed beside each violation.
	why string
	// transitive counts indirect imports too.
	transitive bool
	// scope chooses between the imports of production code and those of tests.
	scope scope
}

type scope int

const (
	production scope = iota + 1
	tests
)

var rules = []rule{
	{
		name:   "shared-contract imports the standard library and itself",
		who:    []string{"./shared-contract/..."},
		except: []string{"./shared-contract/contracttest/..."},
		forbid: []string{"*"}, allow: []string{"std", "./shared-contract/..."},
		why:        "both sides agree on it, so it must not bring anyone's dependencies",
		transitive: true, scope: production,
	},
	{
		name:   "contracttest imports what compares and generates values beside that",
		who:    []string{"./shared-contract/contracttest/..."},
		forbid: []string{"*"},
		allow: []string{
			"std", "./shared-contract/...",
			"pgregory.net/rapid/...", "github.com/google/go-cmp/...", "go.uber.org/goleak/...",
		},
		why:        "every adapter's tests import the suites; they must not bring an adapter or its client along",
		transitive: true, scope: production,
	},
	{
		name:   "tests of shared-contract know no adapter",
		who:    []string{"./shared-contract/..."},
		forbid: []string{"*"},
		allow: []string{
			"std", "./shared-contract/...",
			"pgregory.net/rapid/...", "github.com/google/go-cmp/...", "go.uber.org/goleak/...",
		},
		why:   "a contract that needs an adapter to be tested is that adapter's, not everyone's",
		scope: tests,
	},
	{
		name:   "lua imports shared-contract/store",
		who:    []string{"./lua/..."},
		forbid: []string{"*"}, allow: []string{"std", "./lua/...", "./shared-contract/store/..."},
		why:   "it is programs and their manifest; the descriptors are all that it needs",
		scope: production,
	},
	{
		name:   "only cacheredis has a Redis client",
		who:    []string{"./..."},
		except: []string{"./adapter/outbound/cacheredis/...", "./test/..."},
		forbid: []string{"github.com/redis/go-redis/..."},
		why:    "elsewhere a port is enough, and a second client would decide about retries again",
		scope:  production,
	},
	{
		name:   "only cacheredis among the adapters has programs",
		who:    []string{"./adapter/..."},
		except: []string{"./adapter/outbound/cacheredis/..."},
		forbid: []string{"./lua/..."},
		why:    "inbound adapters know ports, and the memory adapter decides with shared-contract/algorithm",
		scope:  production,
	},
	{
		name:   "only the composition knows fx and koanf",
		who:    []string{"./..."},
		except: []string{"./app-bootstrap/...", "./cmd/...", "./docs/examples/...", "./test/..."},
		forbid: []string{"go.uber.org/fx/...", "go.uber.org/dig/...", "github.com/knadh/koanf/..."},
		why:    "logic builds without a container, and adapters take plain config structs",
		// The adapters' libraries must not bring them either.
		transitive: true, scope: production,
	},
	{
		name:   "adapters do not import each other",
		who:    []string{"./adapter/..."},
		forbid: []string{"./adapter/..."}, allow: []string{"self", "./adapter/inbound/internal/..."},
		why:   "each can be left out of a build; what joins two of them is tested in test, and what doors have in common is no adapter",
		scope: production,
	},
	{
		name:   "inbound adapters import shared-contract only",
		who:    []string{"./adapter/inbound/..."},
		forbid: []string{"./..."}, allow: []string{"self", "./adapter/inbound/internal/...", "./shared-contract/..."},
		why:   "an inbound adapter knows ports, never a provider",
		scope: production,
	},
	{
		name:   "the doors of HTTP bring no gRPC",
		who:    []string{"./adapter/inbound/httpapi/...", "./adapter/inbound/httpedge/...", "./adapter/inbound/internal/..."},
		forbid: []string{"google.golang.org/grpc/...", "google.golang.org/protobuf/...", "google.golang.org/genproto/..."},
		why:    "a service that puts the middleware in front of its handlers must not link a second protocol",
		// Neither may what they have in common.
		transitive: true, scope: production,
	},
	{
		name:   "only what doors have in common writes structured fields",
		who:    []string{"./..."},
		except: []string{"./adapter/inbound/internal/edge/...", "./test/..."},
		forbid: []string{"github.com/dunglas/httpsfv/..."},
		why:    "the fields that tell of a limit are written in one place, which a fuzz target holds to their parser",
		scope:  production,
	},
	{
		name:   "only the door for Envoy brings gRPC and Envoy's types",
		who:    []string{"./adapter/...", "./app-bootstrap/...", "./lua/...", "./shared-contract/..."},
		except: []string{"./adapter/inbound/envoyrls/...", "./app-bootstrap/envoydoor/...", "./adapter/inbound/grpcedge/..."},
		forbid: []string{"google.golang.org/grpc/...", "github.com/envoyproxy/..."},
		why:    "a host application that limits over HTTP, or asks the port itself, builds neither",
		// The configuration and the composition must not bring them along either.
		transitive: true, scope: production,
	},
	{
		name:   "only the door for Envoy watches files",
		who:    []string{"./..."},
		except: []string{"./app-bootstrap/envoydoor/...", "./cmd/...", "./test/..."},
		forbid: []string{"github.com/fsnotify/..."},
		why:    "configuration is read once; what is reloaded has one place that keeps the last good",
		scope:  production, transitive: true,
	},
	{
		name:   "only the rules of Envoy read YAML by themselves",
		who:    []string{"./..."},
		except: []string{"./adapter/inbound/envoyrls/rules/...", "./test/..."},
		forbid: []string{"go.yaml.in/yaml/...", "gopkg.in/yaml.v3", "gopkg.in/yaml.v2"},
		why:    "configuration comes through koanf, strictly decoded; a second reader would take what that refuses",
		scope:  production,
	},
	{
		name:   "the rules of Envoy know no protocol",
		who:    []string{"./adapter/inbound/envoyrls/rules/..."},
		forbid: []string{"google.golang.org/...", "github.com/envoyproxy/..."},
		why:    "they are read where no gRPC is, and fuzzed by themselves",
		scope:  production, transitive: true,
	},
	{
		name:   "outbound adapters import shared-contract and lua",
		who:    []string{"./adapter/outbound/..."},
		forbid: []string{"./..."}, allow: []string{"self", "./shared-contract/...", "./lua/..."},
		why:   "arrows point from cmd to app-bootstrap to adapters, never back",
		scope: production,
	},
	{
		name:   "the rate limiter's runtime knows no cache",
		who:    []string{"./app-bootstrap/composition/...", "./app-bootstrap/service/...", "./cmd/...", "./adapter/inbound/..."},
		forbid: []string{"./shared-contract/cache/failopen/...", "./app-bootstrap/caching/..."},
		why:    "limits fail closed on a connection of their own; a cache may lose what it holds and fails open",
		// The provider's package holds both ports, so the port itself is reached through it; these are not.
		transitive: true, scope: production,
	},
	{
		name:   "nothing puts a fallback store together by itself",
		who:    []string{"./..."},
		except: []string{"./shared-contract/store/fallback/...", "./docs/...", "./test/..."},
		forbid: []string{"./shared-contract/store/fallback/..."},
		why:    "limits fail closed; whoever wants a second store to serve chooses it, and counts what it over-admits",
		// Neither may it be brought along.
		transitive: true, scope: production,
	},
	{
		name:   "app-bootstrap does not import programs or examples",
		who:    []string{"./app-bootstrap/..."},
		forbid: []string{"./cmd/...", "./docs/..."},
		why:    "a host application composes it without our programs",
		scope:  production,
	},
	{
		name:   "production code imports no test code",
		who:    []string{"./..."},
		except: []string{"./test/...", "./shared-contract/contracttest/..."},
		forbid: []string{
			"testing", "./test/...", "./shared-contract/contracttest/...",
			"github.com/alicebob/miniredis/...", "github.com/testcontainers/testcontainers-go/...",
			"github.com/stretchr/testify/...", "github.com/google/go-cmp/...",
			"go.uber.org/goleak/...", "pgregory.net/rapid/...",
		},
		why:   "a program would carry test flags, servers and assertions that panic",
		scope: production,
	},
}
