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
	// SavingRestAnnotation says until when its node is not fenced to save money, because it was and pods needed it, and how often.
	SavingRestAnnotation = "tenon.sh/saving-rest"
	// KeptForAnnotation is on a node that is kept for a move, and names it.
	KeptForAnnotation = "tenon.sh/kept-for"
)

// FormatSeats writes seats as an annotation's text: class:count, separated by commas.
func FormatSeats(seats []Seat) string {
	parts := make([]string, len(seats))
	for i, s := range seats {
		parts[i] = s.Class + ":" + strconv.Itoa(s.Count)
	}
	return strings.Join(parts, ",")
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

// Rest is why a node is left alone for a while: a disruption of it was given up.
type Rest struct {
	// Until is when the node may be tried again; Count is how often it had to rest.
	Until time.Time
	Count int
	// From is the reason of the disruption; empty if that is not known.
	From string
}

// String is the rest as an annotation's text.
func (r Rest) String() string {
	return strings.TrimSpace(r.Until.UTC().Format(time.RFC3339) + " " + strconv.Itoa(r.Count) + " " + r.From)
}

// ParseRest reads the text of a rest. What can't be read is no rest.
func ParseRest(text string) Rest {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 {
		return Rest{}
	}
	until, err := time.Parse(time.RFC3339, words[0])
	n, bad := strconv.Atoi(words[1])
	if err != nil || bad != nil || n < 0 {
		return Rest{}
	}
	return Rest{Until: until, Count: n, From: strings.Join(words[2:], "")}
}
