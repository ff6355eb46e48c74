package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// report tells the numbers, and the mutants that survive without a reason. It says whether all is well.
func report(w io.Writer, list string, targets []*target, known *knowledge) (bool, error) {
	reasons, err := explained(list)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "\n%-12s %8s %8s %9s %10s %10s %8s\n", "package", "mutants", "killed", "survived", "explained",
		"unreached", "untried")
	var open, stale []string
	for _, t := range targets {
		var n struct{ killed, survived, explained, unreached, untried int }
		for i := range t.mutants {
			m := &t.mutants[i]
			v, tried := known.about(m)
			reason := reasons[m.key()]
			switch {
			case !tried:
				n.untried++
				continue
			case v.Status == killed:
				n.killed++
				if reason != "" {
					stale = append(stale, m.key())
				}
				continue
			case v.Status == survived:
				n.survived++
			default:
				n.unreached++
			}
			if reason != "" {
				n.explained++
				continue
			}
			open = append(open, fmt.Sprintf("%s (%s, line %d)", m.key(), v.Status, m.Line))
		}
		fmt.Fprintf(w, "%-12s %8d %8d %9d %10d %10d %8d\n", t.name, len(t.mutants), n.killed, n.survived, n.explained,
			n.unreached, n.untried)
	}
	for _, key := range stale {
		fmt.Fprintln(w, "is killed now, so take it off the list:", key)
	}
	for _, line := range open {
		fmt.Fprintln(w, "survives:", line)
	}
	return len(open) == 0, nil
}

// explained reads the list of survivors: a line with a reason ("# ..."), and below it the mutants that it is about, one
// a line. An empty line ends a reason.
func explained(list string) (map[string]string, error) {
	text, err := os.ReadFile(list)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	out, reason := make(map[string]string), ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "":
			reason = ""
		case strings.HasPrefix(line, "#"):
			reason = strings.TrimSpace(reason + " " + strings.TrimSpace(strings.TrimPrefix(line, "#")))
		case reason == "":
			return nil, fmt.Errorf("%s: %q has no reason; write one above it in a line that begins with #", list, line)
		default:
			out[line] = reason
		}
	}
	return out, nil
}
