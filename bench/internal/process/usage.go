// Package process runs a controller as a child process and tells what it has used. It touches the processes that it
// starts, their logs and /proc, so it needs Linux.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of times in /proc, which Linux fixes at 100 for every program.
const ticksPerSecond = 100

// Usage is what a process has used since its start.
type Usage struct {
	// Megabytes is the resident memory now, PeakMegabytes the most there ever was.
	Megabytes     float64
	PeakMegabytes float64
	CPUSeconds    float64
}

// usageOf reads what a running process has used.
func usageOf(pid int) (Usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return Usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	var u Usage
	if u.Megabytes, err = megabytes(string(status), "VmRSS"); err != nil {
		return Usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	if u.PeakMegabytes, err = megabytes(string(status), "VmHWM"); err != nil {
		return Usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	if u.CPUSeconds, err = cpuSeconds(string(stat)); err != nil {
		return Usage{}, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	return u, nil
}

// megabytes finds an amount of memory in the text of /proc/PID/status.
func megabytes(status, name string) (float64, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		value, ok = strings.CutSuffix(strings.TrimSpace(value), " kB")
		kilobytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("%q is not a number of kB", strings.TrimSpace(line))
		}
		return kilobytes / 1024, nil
	}
	return 0, fmt.Errorf("there is no line %s", name)
}

// cpuSeconds adds user and system time in the text of /proc/PID/stat.
func cpuSeconds(stat string) (float64, error) {
	// The second field is the program's name in parentheses, which may hold anything; the state follows it.
	_, rest, ok := cutLast(stat, ")")
	fields := strings.Fields(rest)
	const user, system = 11, 12 // counted from the state
	if !ok || len(fields) <= system {
		return 0, fmt.Errorf("%q is too short", strings.TrimSpace(stat))
	}
	ticks := 0.0
	for _, i := range []int{user, system} {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of ticks", fields[i])
		}
		ticks += float64(n)
	}
	return ticks / ticksPerSecond, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// Load is the machine's load average over the last minute.
func Load() (float64, error) {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("read the load of the machine: %w", err)
	}
	return parseLoad(string(content))
}

func parseLoad(text string) (float64, error) {
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("read the load of the machine: %q is not a number", first)
	}
	return load, nil
}
