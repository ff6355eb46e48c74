package sim

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
)

// shown is how many of the last events a failure shows.
const shown = 60

// trace is the history of a run: all of it as a hash, the last part as text.
type trace struct {
	clock *clock
	start time.Time
	hash  uint64
	lines []string
	next  int
	count int
	// tell gets every line, if somebody wants to read along.
	tell func(string)
}

func newTrace(c *clock) *trace {
	return &trace{clock: c, start: c.now, lines: make([]string, shown), hash: 14695981039346656037}
}

// note adds an event to the history.
func (t *trace) note(format string, args ...any) {
	line := fmt.Sprintf("%8.2fs  ", t.clock.now.Sub(t.start).Seconds()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	h.Write([]byte(line))
	t.hash = t.hash*1099511628211 ^ h.Sum64()
	t.lines[t.next] = line
	t.next = (t.next + 1) % shown
	t.count++
	if t.tell != nil {
		t.tell(line)
	}
}

// last is the end of the history.
func (t *trace) last() string {
	var out []string
	for i := range shown {
		if line := t.lines[(t.next+i)%shown]; line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
