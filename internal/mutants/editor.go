package main

import (
	"cmp"
	"slices"
)

// editor puts text around parts of a source file. Parts may lie within each other.
type editor struct {
	src   []byte
	edits []edit
}

// edit is text that goes in at a place, and how many bytes it stands for.
type edit struct {
	at, gone int
	text     string
	// Where the part that it belongs to begins and ends, and whether it goes before the part or after it.
	from, to, seq int
	after         bool
}

// wrap puts text before and after a part.
func (e *editor) wrap(from, to int, before, after string) {
	seq := len(e.edits)
	e.edits = append(e.edits, edit{at: from, text: before, from: from, to: to, seq: seq}, edit{at: to, text: after,
		from: from, to: to, seq: seq, after: true})
}

// replace puts text in the place of a part.
func (e *editor) replace(from, to int, text string) {
	e.edits = append(e.edits, edit{at: from, gone: to - from, text: text, from: from, to: to, seq: len(e.edits)})
}

// result is the file with all of it done. At one place, parts that end come before parts that begin; of those that end
// the inner ones come first, of those that begin the outer ones. Of two around the same part the later is the outer
// one.
func (e *editor) result() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.after != b.after:
			if a.after {
				return -1
			}
			return 1
		case a.after && a.from != b.from:
			return cmp.Compare(b.from, a.from)
		case !a.after && a.to != b.to:
			return cmp.Compare(b.to, a.to)
		case a.after:
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Compare(b.seq, a.seq)
	})
	var out []byte
	done := 0
	for _, x := range e.edits {
		out = append(out, e.src[done:x.at]...)
		out = append(out, x.text...)
		done = x.at + x.gone
	}
	return append(out, e.src[done:]...)
}
