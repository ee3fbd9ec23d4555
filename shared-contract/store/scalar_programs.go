package store

// StoreIncrByV1 is IncrBy: the sum, or a word that says why there is none.
var StoreIncrByV1 = &Program{
	Name: "store-incrby", Version: 1, Keys: 1,
	Args: []Field{
		integerField("delta", "units", -maxExact, maxExact),
		integerField("ttl", "ms", 1, maxHorizon),
	},
	Reply: []Field{
		{Name: "sum", Kind: FieldInteger, Unit: "units", Min: -maxExact, Max: maxExact, Word: []string{"NOT_INTEGER", "OUT_OF_RANGE"}},
	},
}
