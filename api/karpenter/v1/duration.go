package v1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Never is how a user writes that something is not to happen, where a duration is expected.
const Never = "Never"

// NillableDuration is a duration or Never. It remembers the text it was read from and writes the same text back, so
// that a tool which compares what it applied with what is stored sees no difference between "1h" and "60m".
//
// The zero value is "not set": fields of this type are omitted when zero, and the API server fills in its default.
// +kubebuilder:validation:Type=string
type NillableDuration struct {
	// Duration is nil for Never and for a value that is not set.
	Duration *time.Duration `json:"-"`
	// Raw is the text as the user wrote it; empty means that it is derived from Duration.
	Raw string `json:"-"`
}

// DurationOf returns d as a NillableDuration.
func DurationOf(d time.Duration) NillableDuration {
	return NillableDuration{Duration: &d}
}

// NeverDuration returns the NillableDuration that reads Never.
func NeverDuration() NillableDuration {
	return NillableDuration{Raw: Never}
}

// ParseNillableDuration reads a Go duration or Never.
func ParseNillableDuration(text string) (NillableDuration, error) {
	if text == Never {
		return NeverDuration(), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return NillableDuration{}, fmt.Errorf("parsing %q as a duration or %q: %w", text, Never, err)
	}
	return NillableDuration{Duration: &d, Raw: text}, nil
}

// IsNever tells whether there is no duration.
func (d NillableDuration) IsNever() bool {
	return d.Duration == nil
}

// IsZero tells whether the value is not set at all; encoders omit such a field.
func (d NillableDuration) IsZero() bool {
	return d.Duration == nil && d.Raw == ""
}

// String returns the text as the user wrote it, or the duration's usual text, or Never.
func (d NillableDuration) String() string {
	switch {
	case d.Raw != "":
		return d.Raw
	case d.Duration != nil:
		return d.Duration.String()
	default:
		return Never
	}
}

// MarshalJSON writes the text of String.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a string; null leaves the value unset.
func (d *NillableDuration) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a duration: %w", err)
	}
	if text == nil {
		*d = NillableDuration{}
		return nil
	}
	parsed, err := ParseNillableDuration(*text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
