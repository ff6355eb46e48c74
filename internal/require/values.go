// Package require holds what may be asked of a node's labels: for each key a set of values, combined by
// intersection, matched against labels and compiled to bitsets over a table of rows.
//
// Floor 0: pure; it imports nothing but the standard library.
package require

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Operator relates a label to values, in Kubernetes' spelling.
type Operator string

// The operators of node selectors, and Gte and Lte, which NodePools add.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// Values is the set of states that one label may be in: absent, or present with one of a set of values. The zero
// value allows nothing; Anything allows everything. Values are immutable.
type Values struct {
	absent bool     // a node without the label will do
	except bool     // list names the values that will not do, instead of those that will
	list   []string // sorted, no duplicates
	low    int64    // with except: the value must be an integer in low..high, if bounded
	high   int64
	bound  bool
}

// Anything is satisfied by every node.
func Anything() Values { return Values{absent: true, except: true} }

// Only is satisfied by the listed values.
func Only(values ...string) Values { return Values{list: sorted(values)} }

// Make turns an operator and its values into a set. ok is false if the operator is unknown or a number is missing.
func Make(op Operator, values []string) (v Values, ok bool) {
	switch op {
	case In:
		return Only(values...), true
	case NotIn:
		return Values{absent: true, except: true, list: sorted(values)}, true
	case Exists:
		return Values{except: true}, true
	case DoesNotExist:
		return Values{absent: true}, true
	case Gt, Lt, Gte, Lte:
		if len(values) != 1 {
			return Values{}, false
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return Values{}, false
		}
		return bounded(op, n), true
	}
	return Values{}, false
}

func bounded(op Operator, n int64) Values {
	v := Values{except: true, bound: true, low: math.MinInt64, high: math.MaxInt64}
	switch op {
	case Gt:
		if n == math.MaxInt64 {
			return Values{}
		}
		v.low = n + 1
	case Gte:
		v.low = n
	case Lt:
		if n == math.MinInt64 {
			return Values{}
		}
		v.high = n - 1
	case Lte:
		v.high = n
	}
	return v
}

func sorted(values []string) []string {
	if slices.IsSorted(values) && !hasRepeats(values) {
		return values
	}
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

func hasRepeats(sorted []string) bool {
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return true
		}
	}
	return false
}

// Matches reports whether a node satisfies the set: present says whether it carries the label at all.
func (v Values) Matches(value string, present bool) bool {
	if !present {
		return v.absent
	}
	_, listed := slices.BinarySearch(v.list, value)
	if listed == v.except {
		return false
	}
	return !v.bound || v.inBounds(value)
}

func (v Values) inBounds(value string) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && v.low <= n && n <= v.high
}

// AllowsAbsent reports whether a node without the label will do.
func (v Values) AllowsAbsent() bool { return v.absent }

// Listed returns the values that will do if they can be counted: the set is finite.
func (v Values) Listed() (values []string, finite bool) { return v.list, !v.except }

// IsEmpty reports whether no node can satisfy the set, numbers being written without leading zeros.
func (v Values) IsEmpty() bool {
	if v.absent {
		return false
	}
	if !v.except {
		return len(v.list) == 0
	}
	return v.bound && v.excludesAll()
}

// excludesAll reports whether every integer within the bounds is listed as one that will not do.
func (v Values) excludesAll() bool {
	if uint64(v.high)-uint64(v.low) >= uint64(len(v.list)) {
		return false // there are more of them than are listed
	}
	for n := v.low; ; n++ {
		if _, listed := slices.BinarySearch(v.list, strconv.FormatInt(n, 10)); !listed {
			return false
		}
		if n == v.high {
			return true
		}
	}
}

// Names reports whether the value is one of those by which the set is written.
func (v Values) Names(value string) bool {
	_, found := slices.BinarySearch(v.list, value)
	return found
}

// Bytes is how long the values are together by which the set is written.
func (v Values) Bytes() int {
	sum := 0
	for _, value := range v.list {
		sum += len(value)
	}
	return sum
}

// Among leaves out the values by which the set is written that do not exist: of those that do, the same are allowed.
func (v Values) Among(exists func(value string) bool) Values {
	var kept []string
	for _, value := range v.list {
		if exists(value) {
			kept = append(kept, value)
		}
	}
	v.list = kept
	return v
}

// IsAnything reports whether every node satisfies the set.
func (v Values) IsAnything() bool { return v.absent && v.except && len(v.list) == 0 && !v.bound }

// And is the set of states allowed by both.
func (v Values) And(w Values) Values {
	out := Values{absent: v.absent && w.absent, except: v.except && w.except}
	switch {
	case v.except && w.except:
		out.list = sorted(append(slices.Clone(v.list), w.list...))
		out.low, out.high, out.bound = andBounds(v, w)
		if out.bound && out.low > out.high {
			return Values{absent: out.absent}
		}
	case v.except:
		out.list = keep(w.list, v)
	default:
		out.list = keep(v.list, w)
	}
	return out
}

func keep(list []string, by Values) []string {
	var out []string
	for _, value := range list {
		if by.Matches(value, true) {
			out = append(out, value)
		}
	}
	return out
}

func andBounds(v, w Values) (low, high int64, bound bool) {
	low, high = math.MinInt64, math.MaxInt64
	for _, x := range []Values{v, w} {
		if x.bound {
			low, high, bound = max(low, x.low), min(high, x.high), true
		}
	}
	return low, high, bound
}

// Pick names one value that satisfies the set, if a present label can: the same one each time.
func (v Values) Pick() (value string, ok bool) {
	if !v.except {
		if len(v.list) == 0 {
			return "", false
		}
		return v.list[0], true
	}
	if !v.bound {
		for _, value := range []string{"true", "yes", "any"} {
			if v.Matches(value, true) {
				return value, true
			}
		}
		return "", false
	}
	for n := max(v.low, 0); n <= v.high && n <= max(v.low, 0)+int64(len(v.list)); n++ {
		if value := strconv.FormatInt(n, 10); v.Matches(value, true) {
			return value, true
		}
	}
	return "", false
}

// Terms writes the set as operators that together mean the same. An empty set has no such form and gives nil.
func (v Values) Terms() []Term {
	switch {
	case v.IsAnything() || v.IsEmpty():
		return nil
	case !v.except && v.absent && len(v.list) == 0:
		return []Term{{Op: DoesNotExist}}
	case !v.except:
		return []Term{{Op: In, Values: v.list}}
	}
	var out []Term
	if v.bound && v.low != math.MinInt64 {
		out = append(out, Term{Op: Gte, Values: []string{strconv.FormatInt(v.low, 10)}})
	}
	if v.bound && v.high != math.MaxInt64 {
		out = append(out, Term{Op: Lte, Values: []string{strconv.FormatInt(v.high, 10)}})
	}
	if len(v.list) > 0 {
		out = append(out, Term{Op: NotIn, Values: v.list})
	}
	if !v.absent && !v.bound {
		out = append(out, Term{Op: Exists})
	}
	return out
}

// Term is one operator with its values.
type Term struct {
	Op     Operator
	Values []string
}

// String writes the set as people write it in a selector.
func (v Values) String() string {
	var text strings.Builder
	v.write(&text)
	return text.String()
}

// write is String into one text for all: sets may have thousands of values.
func (v Values) write(text *strings.Builder) {
	if v.IsEmpty() {
		text.WriteString("nothing")
		return
	}
	terms := v.Terms()
	if len(terms) == 0 {
		text.WriteString("anything")
	}
	for i, term := range terms {
		if i > 0 {
			text.WriteString(" and ")
		}
		text.WriteString(string(term.Op))
		for j, value := range term.Values {
			if j == 0 {
				text.WriteString(" [")
			} else {
				text.WriteString(", ")
			}
			text.WriteString(value)
		}
		if len(term.Values) > 0 {
			text.WriteByte(']')
		}
	}
}
