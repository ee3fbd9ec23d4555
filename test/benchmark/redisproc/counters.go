package redisproc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Call is what the server counted of one command. Commands that a program runs are counted beside the
// program, whose time has theirs in it.
type Call struct {
	Calls  int64
	Micros int64 // altogether
}

// Counters are what the server counted since a moment.
type Counters struct {
	Commands  map[string]Call // by lower-case name
	CPUMicros float64         // of the whole process, since it started
}

// Reset sets the counters of commands to nothing.
func (s *Server) Reset(ctx context.Context) error { return s.admin.ConfigResetStat(ctx).Err() }

// Counters reads them.
func (s *Server) Counters(ctx context.Context) (Counters, error) {
	stats, err := s.info(ctx, "commandstats")
	if err != nil {
		return Counters{}, err
	}
	commands, err := parseCommands(stats)
	if err != nil {
		return Counters{}, err
	}
	cpu, err := s.info(ctx, "cpu")
	if err != nil {
		return Counters{}, err
	}
	c := Counters{Commands: commands}
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(cpu[field], 64)
		if err != nil {
			return Counters{}, fmt.Errorf("redisproc: %s: %w", field, err)
		}
		c.CPUMicros += seconds * 1e6
	}
	return c, nil
}

// MemoryBytes is the server's used_memory: what its allocator was asked for.
func (s *Server) MemoryBytes(ctx context.Context) (int64, error) {
	info, err := s.info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info["used_memory"], 10, 64)
}

// info reads one section of INFO.
func (s *Server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("redisproc: INFO %s: %w", section, err)
	}
	return parseInfo(text), nil
}

// parseInfo reads lines of name:value.
func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			fields[name] = value
		}
	}
	return fields
}

// parseCommands reads cmdstat_evalsha:calls=3,usec=12,... of each command.
func parseCommands(stats map[string]string) (map[string]Call, error) {
	commands := make(map[string]Call)
	for name, text := range stats {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok {
			continue
		}
		var call Call
		for part := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(part, "=")
			var into *int64
			switch key {
			case "calls":
				into = &call.Calls
			case "usec":
				into = &call.Micros
			default:
				continue
			}
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("redisproc: %s of %s: %w", key, name, err)
			}
			*into = n
		}
		commands[strings.ToLower(name)] = call
	}
	return commands, nil
}

// Scripts are the calls of programs altogether.
func (c Counters) Scripts() Call {
	var all Call
	for _, name := range []string{"eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"} {
		all.Calls += c.Commands[name].Calls
		all.Micros += c.Commands[name].Micros
	}
	return all
}
