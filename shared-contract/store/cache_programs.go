package store

// An entry of a cache is one string: schema, token of the version, value, joined by colons. The bounds
// are those of shared-contract/cache, which this package does not import; a test there compares.
const (
	cacheTokenBytes  = 22
	cacheHeaderBytes = len("1:") + cacheTokenBytes + len(":")
	cacheTokenUnit   = "id"
)

func cacheProgram(name string, own ...Field) *Program {
	args := append([]Field{{Name: "observed", Kind: FieldText, Unit: cacheTokenUnit, Min: cacheTokenBytes, Max: cacheTokenBytes}}, own...)
	return &Program{
		Name: name, Version: 1, Keys: 1, Args: args,
		Reply: []Field{
			{Name: "status", Kind: FieldText, Word: []string{"APPLIED", "CHANGED", "ABSENT", "STATE_INCOMPATIBLE", "INVALID"}},
		},
	}
}

// The programs of a cache. Each takes one key and acts only where the version stands there whose token
// is given. Get and put-if-absent need none: GET and SET NX are atomic by themselves.
var (
	// CacheReplaceV1 puts another entry in the place of the version observed.
	CacheReplaceV1 = cacheProgram("cache-replace",
		Field{Name: "entry", Kind: FieldText, Unit: "bytes", Min: int64(cacheHeaderBytes), Max: MaxTextBytes},
		integerField("ttl", "ms", 1, maxHorizon),
	)
	// CacheDeleteV1 removes the version observed.
	CacheDeleteV1 = cacheProgram("cache-delete")
)

// CachePrograms lists the programs of a cache.
func CachePrograms() []*Program { return []*Program{CacheReplaceV1, CacheDeleteV1} }
