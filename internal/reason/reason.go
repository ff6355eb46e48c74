// Package reason is why something is as it is, or is to be done, as data: a code and what it is about. Whoever decides
// gives one; package render has the words for each.
//
// Floor 0: it knows nothing but values.
package reason

import "time"

// Text is a reason with its arguments. Two of them can be compared with ==, and the zero value says nothing.
type Text struct {
	Code Code
	// Args are strings, numbers, times and durations, other texts, or values that package render knows: whatever can be
	// compared.
	Args [6]any
}

// Of is a text with the arguments that stand beside the code in this package.
func Of(code Code, args ...any) Text {
	t := Text{Code: code}
	if copy(t.Args[:], args) < len(args) {
		panic("reason: too many arguments")
	}
	return t
}

// Said is what somebody else has said, word for word: the cloud, Kubernetes, or whoever wrote an object.
func Said(words string) Text {
	if words == "" {
		return Text{}
	}
	return Of(Verbatim, words)
}

// Join is one text after the other; what says nothing is left out.
func Join(list ...Text) Text {
	var out Text
	for i := len(list) - 1; i >= 0; i-- {
		switch {
		case out.IsZero():
			out = list[i]
		case !list[i].IsZero():
			out = Of(Both, list[i], out)
		}
	}
	return out
}

// IsZero reports whether the text says nothing.
func (t Text) IsZero() bool { return t.Code == Nothing }

// Clock is a moment of which only the time of day is told.
type Clock time.Time
