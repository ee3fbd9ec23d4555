package rules

// Difference is a way in which the same rules and requests are answered otherwise here than by
// envoyproxy/ratelimit, and why.
type Difference struct{ What, Why string }

// Differences lists all that hold whatever the rules say. What one file says and has no effect here is in
// Rules.Notes; what cannot be taken is a fault.
func Differences() []Difference {
	return []Difference{
		{
			"A denied request spends nothing, and limit_remaining of its status is what is left.",
			"There, the hits of a denied request are added as well, and the count it shows is 0: a request for 3 of the last 2 leaves nothing there and 2 here.",
		},
		{
			"A request for more hits than a rule admits at once (its limit, burst or max_cost) is OVER_LIMIT without asking the store.",
			"It could never pass, so nothing is spent or looked up; limit_remaining is 0 then.",
		},
		{
			"hits_addend 0 on a descriptor, and is_negative_hits, are INVALID_ARGUMENT.",
			"Nothing is looked at without spending, and nothing is given back, in this revision.",
		},
		{
			"Keys and values are compared whole.",
			"There, they are joined by _ before they are compared, so that the rule a_b without a value has the descriptor (a, b) as well.",
		},
		{
			"A limit that a request brings along counts apart from the rule's, and from each other limit. Its unit_multiplier counts.",
			"State belongs to a policy, and another limit is another policy. There, limits of one unit share a counter, and the multiplier is not read.",
		},
		{
			"A request without a domain or a descriptor, a descriptor without an entry, and an entry without a key are INVALID_ARGUMENT, and so is what is beyond the bounds.",
			"The protocol's own rules ask for them; there, the first two are an unknown error and the others are OK.",
		},
		{
			"A request of which one descriptor is over its limit and another could not be decided is OVER_LIMIT.",
			"There, it is an error, which can let it through.",
		},
		{
			"Windows are those of the store's clock.",
			"There, each instance's own clock decides. duration_until_reset is rounded up to whole seconds in both.",
		},
		{
			"A denial under quota_mode keeps its duration_until_reset.",
			"There, it is dropped. Later revisions there count quotas in groups and can deny; this is the meaning of January 2026.",
		},
		{
			"Of several denials, response headers are of the one that lasts longest, and Retry-After is one of them.",
			"There, they are of the last one.",
		},
		{
			"detailed_metric and value_to_metric have no effect.",
			"A metric's labels here are policies; descriptor values can be anybody's address or name.",
		},
		{
			"A file with a second YAML document, and a directory without a file of rules, are faults.",
			"There, both load, and what is missing is not limited.",
		},
	}
}
