package replay

// maxPoints bounds the points of a series.
const maxPoints = 120

// pointSteps are the lengths of points that people read easily, in ms. Each divides the next, so that
// neighbours can be joined; beyond the last, lengths double.
var pointSteps = []int64{
	1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 10_800_000, 43_200_000, 86_400_000,
}

// Series counts admitted and denied requests over time in points of equal length, aligned to the
// epoch. The length is the least of 1 s, 5 s, 15 s, 1 m, 5 m, 15 m, 1 h, 3 h, 12 h, 24 h, 48 h, ...
// with which all requests fit into 120 points.
type Series struct {
	FromMillis  int64   `json:"fromMillis"`
	PointMillis int64   `json:"pointMillis"` // 0 where there is no point
	Admitted    []int64 `json:"admitted"`
	Denied      []int64 `json:"denied"`
}

// series is a Series that grows. It does not know how long the log will be, so it begins fine and
// joins neighbours whenever it is full.
type series struct{ Series }

func (s *series) add(millis, admitted, denied int64) {
	if s.PointMillis == 0 {
		s.PointMillis = pointSteps[0]
		s.FromMillis = millis - millis%s.PointMillis
	}
	for (millis-s.FromMillis)/s.PointMillis >= maxPoints {
		s.widen()
	}
	at := (millis - s.FromMillis) / s.PointMillis
	for int64(len(s.Admitted)) <= at {
		s.Admitted, s.Denied = append(s.Admitted, 0), append(s.Denied, 0)
	}
	s.Admitted[at] += admitted
	s.Denied[at] += denied
}

// widen makes the points longer by one step and keeps them aligned.
func (s *series) widen() {
	wider := 2 * s.PointMillis
	for _, step := range pointSteps {
		if step > s.PointMillis {
			wider = step
			break
		}
	}
	from := s.FromMillis - s.FromMillis%wider
	before := (s.FromMillis - from) / s.PointMillis // points that the first wider one lacks
	factor := wider / s.PointMillis
	join := func(points []int64) []int64 {
		joined := make([]int64, 0, maxPoints)
		for i, n := range points {
			if at := (int64(i) + before) / factor; at < int64(len(joined)) {
				joined[at] += n
			} else {
				joined = append(joined, n)
			}
		}
		return joined
	}
	s.FromMillis, s.PointMillis = from, wider
	s.Admitted, s.Denied = join(s.Admitted), join(s.Denied)
}

func (s *series) points() Series {
	points := s.Series
	if points.PointMillis == 0 {
		points.Admitted, points.Denied = []int64{}, []int64{}
	}
	return points
}
