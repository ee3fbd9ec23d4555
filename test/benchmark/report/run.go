package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/measure"
)

// Machine is what a run ran on.
type Machine struct {
	CPU         string
	Cores       int // that the benchmark may use; the server and its clients share them
	MemoryBytes int64
	System      string
	Go          string
	Redis       string // the server's version
	// Load is the load average of one minute before the run: what others took. Below 0 where the system
	// does not tell.
	Load float64
}

// Conditions are how a run was made.
type Conditions struct {
	Command       string // that gives the run again
	RedisCommand  string
	Started       time.Time
	Rounds        int
	WarmUp        time.Duration // of each cell, not counted
	Duration      time.Duration // of each cell, counted
	Keys          int           // over Redis
	PoolSize      int
	Callers       []int
	DenyCallers   []int // at which denials were measured
	MemoryCallers int   // of cells with many keys in memory
	MemoryKeys    []int
}

// Entry describes a contender in the tables.
type Entry struct {
	Name, Module, Version, Role, Algorithm, Note string
	Fixed                                        bool
}

// Absence is a peer that could not be compared.
type Absence struct{ Name, Why string }

// Sample is one cell of one round.
type Sample struct {
	Contender string
	Kind      string
	Callers   int
	Keys      int
	Policies  int `json:",omitempty"`
	Round     int

	Decisions  int64
	Unexpected int64 `json:",omitempty"` // decisions of the other kind
	Failures   int64 `json:",omitempty"`
	Elapsed    time.Duration

	P50, P99, P999 time.Duration `json:",omitempty"`

	Allocs, Bytes float64 // of each decision

	ScriptMicros float64           `json:",omitempty"` // the server's time for one call of a program
	ServerMicros float64           `json:",omitempty"` // the server's CPU time for one decision
	DoorMicros   float64           `json:",omitempty"` // the CPU time of a process between client and Redis, for one decision
	ServerBusy   float64           `json:",omitempty"` // the server's CPU time, by elapsed time
	MachineBusy  float64           `json:",omitempty"` // the CPU time of everything on the machine, by elapsed time
	ClientBusy   float64           `json:",omitempty"` // the benchmark's own CPU time, by elapsed time
	ServerCalls  map[string]Nested `json:",omitempty"` // by command
	BytesPerKey  float64           `json:",omitempty"`
}

// Nested is a command as the server counted it, one that a program runs among them.
type Nested struct {
	PerDecision float64
	Micros      float64 // of one call
}

// Rate is decisions per second.
func (s Sample) Rate() float64 {
	if s.Elapsed <= 0 {
		return 0
	}
	return float64(s.Decisions) / s.Elapsed.Seconds()
}

// NanosPerDecision is the time that passed for each decision, all callers together.
func (s Sample) NanosPerDecision() float64 {
	return measure.Ratio(float64(s.Elapsed), float64(s.Decisions))
}

// Hot is a function and the share of the CPU time that was spent in it.
type Hot struct {
	Function  string
	Flat, Cum float64 // 0..1, of all samples
}

// Profile is where the CPU time of one cell went.
type Profile struct {
	Cell string
	Top  []Hot
}

// Alone is what the decision in memory costs without the port, by a benchmark of the package's own.
type Alone struct {
	Command              string
	Nanos, Allocs, Bytes float64 // of each decision
}

// Comparison is a run of contenders against each other.
type Comparison struct {
	Machine    Machine
	Conditions Conditions
	Redis      []Entry
	Memory     []Entry
	Absent     []Absence
	Samples    []Sample // over Redis
	InMemory   []Sample
	Alone      *Alone `json:",omitempty"`
	Profiles   []Profile
}

// Scale is a run of edgelimit alone, along one axis at a time.
type Scale struct {
	Machine    Machine
	Conditions Conditions
	Algorithm  string
	Callers    []Sample
	Keys       []Sample
	Policies   []Sample
	Memory     []Sample // keys in memory
}

// Doors is a run of services that speak Envoy's protocol.
type Doors struct {
	Machine    Machine
	Conditions Conditions
	Entries    []Entry
	Samples    []Sample
}

// Load reads a run that was saved. It answers fs.ErrNotExist where there is none.
func Load[T Comparison | Scale | Doors](file string) (*T, error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: the user names it.
	if err != nil {
		return nil, err
	}
	run := new(T)
	if err := json.Unmarshal(text, run); err != nil {
		return nil, fmt.Errorf("report: %s: %w", file, err)
	}
	return run, nil
}

// LoadIfAny is Load, and nil where there is no such file.
func LoadIfAny[T Comparison | Scale | Doors](file string) (*T, error) {
	run, err := Load[T](file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return run, err
}

// Save writes a run.
func Save[T Comparison | Scale | Doors](file string, run *T) error {
	text, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // G301: documentation is for everybody.
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // G306: likewise.
}

// Cell names one cell, of all rounds.
type Cell struct {
	Contender, Kind string
	Callers, Keys   int
}

// pick gives a figure of a cell in each round, in the order of rounds. Keys of 0 means any.
func pick(samples []Sample, cell Cell, figure func(Sample) float64) []float64 {
	var rounds []Sample
	for _, s := range samples {
		if s.Contender == cell.Contender && s.Kind == cell.Kind && s.Callers == cell.Callers && (cell.Keys == 0 || s.Keys == cell.Keys) {
			rounds = append(rounds, s)
		}
	}
	slices.SortStableFunc(rounds, func(a, b Sample) int { return a.Round - b.Round })
	values := make([]float64, len(rounds))
	for i, s := range rounds {
		values[i] = figure(s)
	}
	return values
}

// median of a cell's figure over all rounds; NaN where it was not measured.
func median(samples []Sample, cell Cell, figure func(Sample) float64) float64 {
	return measure.Median(pick(samples, cell, figure))
}
