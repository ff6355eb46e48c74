package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Where a claim carries through a restart what only we know of it. All are additions to the contract.
const (
	// SeatsAnnotation holds its seats.
	SeatsAnnotation = "tenon.sh/seats"
	// MoveAnnotation names the disruption that its node goes in, ReplacesAnnotation the one that it was made for.
	MoveAnnotation     = "tenon.sh/move"
	ReplacesAnnotation = "tenon.sh/replaces"
	// RestAnnotation says until when its node rests after a disruption was given up, and how often one was.
	RestAnnotation = "tenon.sh/rest"
	// SavingRestAnnotation says until when its node is not fenced to save money, because it was and pods needed it, and
	// how often.
	SavingRestAnnotation = "tenon.sh/saving-rest"
	// KeptForAnnotation is on a node that is kept for a move, and names it.
	KeptForAnnotation = "tenon.sh/kept-for"
)

// FormatSeats writes seats as an annotation's text: class:count, separated by commas. Of more seats than an annotation
// may hold, the rest is left out: pods of those classes find the node's room like any other pod.
func FormatSeats(seats []Seat) string {
	var out strings.Builder
	for _, s := range seats {
		part := s.Class + ":" + strconv.Itoa(s.Count)
		if out.Len()+1+len(part) > mostAnnotation {
			break
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.WriteString(part)
	}
	return out.String()
}

// ParseSeats reads what FormatSeats wrote.
func ParseSeats(text string) ([]Seat, error) {
	if text == "" {
		return nil, nil
	}
	var out []Seat
	for _, part := range strings.Split(text, ",") {
		class, count, ok := strings.Cut(part, ":")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 0 || class == "" {
			return nil, fmt.Errorf("%s: %q is not class:count", SeatsAnnotation, part)
		}
		out = append(out, Seat{Class: class, Count: n})
	}
	return out, nil
}

// FormatRest writes until when a node rests, and how often it had to, as an annotation's text.
func FormatRest(until time.Time, rests int) string {
	return until.UTC().Format(time.RFC3339) + " " + strconv.Itoa(rests)
}

// ParseRest reads what FormatRest wrote. What can't be read is no rest.
func ParseRest(text string) (until time.Time, rests int) {
	when, often, _ := strings.Cut(text, " ")
	until, err := time.Parse(time.RFC3339, when)
	n, bad := strconv.Atoi(often)
	if err != nil || bad != nil || n < 0 {
		return time.Time{}, 0
	}
	return until, n
}
