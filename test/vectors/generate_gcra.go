package vectors

// gcraScenarios are the scenarios of the token bucket, under the same numbers by GCRA's names.
func gcraScenarios() []scenario {
	scenarios := bucketScenarios()
	for i := range scenarios {
		p := &scenarios[i].policy
		p.Burst, p.Limit, p.Period = p.Limit, p.RefillTokens, p.RefillPeriod
		p.RefillTokens, p.RefillPeriod = 0, 0
	}
	return append(scenarios,
		scenario{"a burst above the limit of a period", Policy{Revision: 1, Limit: 2, Period: 1000, Burst: 7, Grace: minute, MaxRegression: 2000}, base, []call{
			{0, 7}, {499, 1}, {500, 1}, {1500, 3}, {1500, 2}, {9000, 7}, {9000, 1},
		}},
		scenario{"a burst below the limit of a period", Policy{Revision: 1, Limit: 100, Period: 1000, Burst: 3, Grace: minute, MaxRegression: 2000}, base, []call{
			{0, 3}, {9, 1}, {10, 1}, {29, 2}, {30, 2}, {1030, 3}, {1031, 1},
		}},
		scenario{"fractions of a millisecond add up", Policy{Revision: 1, Limit: 7, Period: 11, Burst: 5, Grace: 0, MaxRegression: 5}, base, []call{
			{0, 1}, {0, 1}, {0, 1}, {0, 2}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 2}, {7, 2}, {20, 5}, {27, 5}, {28, 5},
		}},
		scenario{"burst at the edge of its range", Policy{Revision: 1, Limit: 4_503_599_627_370_495, Period: 1, Burst: 9_007_199_254_740_991, Grace: 0, MaxRegression: 0}, base, []call{
			{0, 9_007_199_254_740_991}, {0, 1}, {1, 4_503_599_627_370_495}, {1, 1}, {3, 9_007_199_254_740_991},
		}},
	)
}
