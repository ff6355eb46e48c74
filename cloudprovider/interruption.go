package cloudprovider

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// InterruptionAnnotation on a NodeClaim says that its instance is going to be taken away, or is as good as gone.
// Whoever hears of that writes it: the part of a provider that listens to its cloud, or any other program. Its value is
// an Interruption as text.
const InterruptionAnnotation = "tenon.sh/interruption"

// The kinds of interruptions that the providers of this repository tell. Another provider may have more.
const (
	SpotInterruption        = "SpotInterruption"
	RebalanceRecommendation = "RebalanceRecommendation"
	ReservationInterruption = "ReservationInterruption"
	ScheduledChange         = "ScheduledChange"
	InstanceStopping        = "InstanceStopping"
	InstanceTerminating     = "InstanceTerminating"
	InstanceUnhealthy       = "InstanceUnhealthy"
	// The three are what a cloud's own checks say: of the instance, of its host, and of changes that are planned for
	// it.
	InstanceStatus = "InstanceStatus"
	SystemStatus   = "SystemStatus"
	EventStatus    = "EventStatus"
)

// force is the word for Force in the text.
const force = "force"

// Interruption is the end of an instance that the cloud announces.
type Interruption struct {
	// Kind is a CamelCase word for people and metrics.
	Kind string
	// Deadline is when the instance stops to work; zero if nobody has set a time. The pods' new places are made ready
	// before they are asked to leave, as far as the time allows it.
	Deadline time.Time
	// Force ends the node at once, without waiting for anything on it: the machine is of no use any more.
	Force bool
}

// IsZero reports whether there is none.
func (i Interruption) IsZero() bool { return i.Kind == "" }

// String is the value of the annotation: the kind, the deadline if there is one, and "force", with spaces between.
func (i Interruption) String() string {
	out := i.Kind
	if !i.Deadline.IsZero() {
		out += " " + i.Deadline.UTC().Format(time.RFC3339)
	}
	if i.Force {
		out += " " + force
	}
	return out
}

// ParseInterruption reads the value of the annotation. An empty one is none.
func ParseInterruption(text string) (Interruption, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Interruption{}, nil
	}
	out := Interruption{Kind: words[0]}
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`).MatchString(out.Kind) {
		return Interruption{}, fmt.Errorf("reading an interruption: %q is no kind; use a word such as %s", out.Kind,
			SpotInterruption)
	}
	for _, word := range words[1:] {
		if word == force {
			out.Force = true
			continue
		}
		at, err := time.Parse(time.RFC3339, word)
		if err != nil {
			return Interruption{}, fmt.Errorf("reading an interruption: %q is neither a time such as "+
				"2026-01-31T12:00:00Z nor the word %s", word, force)
		}
		out.Deadline = at.UTC()
	}
	return out, nil
}

// Over is the more urgent of two interruptions: one that forces, then the one with the earlier deadline. Of two that
// are equally urgent the first stands, so that hearing something twice changes nothing.
func (i Interruption) Over(other Interruption) Interruption {
	switch {
	case i.IsZero():
		return other
	case other.IsZero() || i.Force && !other.Force:
		return i
	case other.Force && !i.Force:
		return other
	case !other.Deadline.IsZero() && (i.Deadline.IsZero() || other.Deadline.Before(i.Deadline)):
		return other
	}
	return i
}

// ForLackOfCapacity reports whether the cloud wants the machine for somebody else: more of the same kind would fare no
// better.
func (i Interruption) ForLackOfCapacity() bool {
	switch i.Kind {
	case SpotInterruption, RebalanceRecommendation, ReservationInterruption:
		return true
	}
	return false
}
