package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

// describe says what the run runs on. What the system does not tell stays unknown.
func describe(ctx context.Context, redisVersion string) report.Machine {
	m := report.Machine{CPU: "unknown", Cores: cores(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Redis: redisVersion, Load: -1}
	if processors, err := cpu.InfoWithContext(ctx); err == nil && len(processors) > 0 {
		m.CPU = processors[0].ModelName
	}
	if memory, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		m.MemoryBytes = int64(memory.Total)
	}
	if info, err := host.InfoWithContext(ctx); err == nil {
		m.System = fmt.Sprintf("%s %s, %s, kernel %s", info.Platform, info.PlatformVersion, m.System, info.KernelVersion)
	}
	if average, err := load.AvgWithContext(ctx); err == nil {
		m.Load = average.Load1
	}
	return m
}

// freeBytes is the memory that can still be had, 0 where the system does not tell.
func freeBytes(ctx context.Context) int64 {
	memory, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return 0
	}
	return int64(memory.Available)
}

// machineSeconds is the CPU time that everything on the machine has used since it began, 0 where the
// system does not tell.
func machineSeconds(ctx context.Context) float64 {
	all, err := cpu.TimesWithContext(ctx, false)
	if err != nil || len(all) == 0 {
		return 0
	}
	t := all[0]
	return t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
}

// versions are those of the modules that this program was built of.
func versions() map[string]string {
	known := map[string]string{"std": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return known
	}
	for _, module := range info.Deps {
		version := module.Version
		if module.Replace != nil && strings.HasPrefix(module.Replace.Path, ".") {
			version = "(this tree)"
		}
		known[module.Path] = version
	}
	return known
}

// entries describe contenders for the tables.
func entries(all []contender.Contender, known map[string]string) []report.Entry {
	list := make([]report.Entry, len(all))
	for i, c := range all {
		list[i] = report.Entry{
			Name: c.Name, Module: c.Module, Version: known[c.Module], Role: string(c.Role), Algorithm: c.Algorithm, Note: c.Note, Fixed: c.Fixed,
		}
	}
	return list
}
