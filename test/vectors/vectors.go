package vectors

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/test/model"
)

//go:embed *.json
var files embed.FS

// Policy holds the numbers of any of the programs.
type Policy struct {
	Revision      int64 `json:"revision"`
	Limit         int64 `json:"limit"` // or capacity
	Window        int64 `json:"windowMillis,omitempty"`
	RefillTokens  int64 `json:"refillTokens,omitempty"`
	RefillPeriod  int64 `json:"refillPeriodMillis,omitempty"`
	Period        int64 `json:"periodMillis,omitempty"`
	Burst         int64 `json:"burst,omitempty"`
	Grace         int64 `json:"graceMillis"`
	MaxRegression int64 `json:"maxRegressionMillis"`
}

// Vector is one call and what must come of it.
type Vector struct {
	Name   string     `json:"name"`
	Policy Policy     `json:"policy"`
	Before model.Hash `json:"before"` // null: the key does not exist
	Now    int64      `json:"now"`
	Cost   int64      `json:"cost"`
	Reply  [7]any     `json:"reply"`
	After  model.Hash `json:"after"`
	TTL    int64      `json:"ttlMillis"` // 0: left as it was
}

// File is the content of one file.
type File struct {
	Program string   `json:"program"`
	Vectors []Vector `json:"vectors"`
}

// Programs lists the programs that have vectors.
func Programs() []string {
	return []string{"rate-fixed-window-v1", "rate-sliding-counter-v1", "rate-token-bucket-v1", "rate-gcra-v1", "rate-sliding-log-v1"}
}

// Load reads the vectors of a program.
func Load(program string) (File, error) {
	text, err := files.ReadFile(program + ".json")
	if err != nil {
		return File{}, err
	}
	var file File
	if err := json.Unmarshal(text, &file); err != nil {
		return File{}, fmt.Errorf("%s: %w", program, err)
	}
	for i := range file.Vectors {
		for j, field := range file.Vectors[i].Reply {
			if n, ok := field.(float64); ok {
				file.Vectors[i].Reply[j] = int64(n) // At most 2^53-1, so exact.
			}
		}
	}
	return file, nil
}

// Model gives the model of a vector's policy.
func Model(program string, p Policy) *model.Model {
	clock := algorithm.Clock{GraceMillis: p.Grace, MaxRegressionMillis: p.MaxRegression}
	switch program {
	case "rate-fixed-window-v1":
		return model.FixedWindow(algorithm.FixedWindow{Limit: p.Limit, WindowMillis: p.Window, Clock: clock},
			fmt.Sprintf("1:fw:%d:golden", p.Revision))
	case "rate-sliding-counter-v1":
		return model.SlidingCounter(algorithm.SlidingCounter{Limit: p.Limit, WindowMillis: p.Window, Clock: clock},
			fmt.Sprintf("1:sc:%d:golden", p.Revision))
	case "rate-token-bucket-v1":
		return model.TokenBucket(algorithm.TokenBucket{
			Capacity: p.Limit, RefillTokens: p.RefillTokens, RefillPeriodMillis: p.RefillPeriod, Clock: clock,
		}, fmt.Sprintf("1:tb:%d:golden", p.Revision))
	case "rate-gcra-v1":
		return model.GCRA(algorithm.GCRA{Limit: p.Limit, PeriodMillis: p.Period, Burst: p.Burst, Clock: clock},
			fmt.Sprintf("1:gc:%d:golden", p.Revision))
	case "rate-sliding-log-v1":
		return model.SlidingLog(algorithm.SlidingLog{Limit: p.Limit, WindowMillis: p.Window, Clock: clock},
			fmt.Sprintf("1:sl:%d:golden", p.Revision))
	}
	return nil
}
