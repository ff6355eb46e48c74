package cluster

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// Seats survive the way through an annotation.
func TestSeatsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var seats []Seat
		for range rapid.IntRange(0, 4).Draw(t, "seats") {
			seats = append(seats, Seat{Class: rapid.StringMatching(`[0-9a-f]{1,16}`).Draw(t, "class"),
				Count: rapid.IntRange(0, 1000).Draw(t, "count")})
		}
		back, err := ParseSeats(FormatSeats(seats))
		if err != nil || !reflect.DeepEqual(back, seats) {
			t.Fatalf("%v came back as %v (%v)", seats, back, err)
		}
	})
}

// What somebody else wrote into the annotation is refused as a whole.
func TestSeatsThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"x", "x:", ":3", "x:-1", "x:1,", "x:one", "x:1:2"} {
		if seats, err := ParseSeats(text); err == nil {
			t.Errorf("%q was read as %v", text, seats)
		}
	}
}
