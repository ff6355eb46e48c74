package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ShortLife is how long a node has to live so that its end is in the order of things.
const ShortLife = 10 * time.Minute

// SlotAnnotation says on a claim of a static pool which slot of the pool it fills, and which try in a row it is:
// slot=try.
const SlotAnnotation = "tenon.sh/slot"

// Slot is the place of a static pool that a claim fills.
type Slot struct {
	Number int
	// Try is 1 more than the nodes of the slot that have ended too soon one after the other; 0 if the claim fills no
	// slot.
	Try int
}

// FormatSlot writes it as an annotation's text.
func FormatSlot(s Slot) string { return strconv.Itoa(s.Number) + "=" + strconv.Itoa(s.Try) }

// mostTries bounds the count that is read from a claim: what is beyond makes no difference.
const mostTries = 1000

// ParseSlot reads what FormatSlot wrote; the empty text is no slot.
func ParseSlot(text string) (Slot, error) {
	if text == "" {
		return Slot{}, nil
	}
	number, try, ok := strings.Cut(text, "=")
	n, wrong := strconv.Atoi(number)
	k, bad := strconv.Atoi(try)
	if !ok || wrong != nil || bad != nil || n < 0 || k < 1 {
		return Slot{}, fmt.Errorf("%s: %q is not slot=try", SlotAnnotation, text)
	}
	return Slot{Number: n, Try: min(k, mostTries)}, nil
}

// LostSlot is a slot of a static pool whose last node ended too soon.
type LostSlot struct {
	Number int
	// Tries is how many of its nodes have ended too soon, one after the other.
	Tries int
	// Next is when the next node may be made for it. ProvenAt is when a node that is there now has lived for long
	// enough; zero if none is.
	Next, ProvenAt time.Time
	// Lifetime is for how long the last one did; EndedBy is who ended it, as far as that is known.
	Lifetime time.Duration
	EndedBy  string
}

// LostSlot is what is known of one of the pool's slots, if its last node ended too soon.
func (p *Pool) LostSlot(number int) (LostSlot, bool) {
	i, found := slices.BinarySearchFunc(p.LostSlots, number, func(l LostSlot, n int) int { return l.Number - n })
	if !found {
		return LostSlot{}, false
	}
	return p.LostSlots[i], true
}

// ShortLivedSlots are the slots of which more than one node in a row ended too soon: one may be an accident.
func (p *Pool) ShortLivedSlots() []LostSlot {
	var out []LostSlot
	for _, l := range p.LostSlots {
		if l.Tries > 1 {
			out = append(out, l)
		}
	}
	return out
}
