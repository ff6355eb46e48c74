package cluster

import (
	"fmt"
	"strconv"
	"strings"
)

// SeatsAnnotation is where a claim carries its seats through a restart. It is an addition to the contract.
const SeatsAnnotation = "tenon.sh/seats"

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
