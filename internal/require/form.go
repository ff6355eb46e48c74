package require

import (
	"errors"
	"slices"
)

// Form is Values spelled out, for whoever writes them down. Values and their forms stand one for one.
type Form struct {
	Absent, Except bool
	List           []string
	Bound          bool
	Low, High      int64
}

// Form spells the values out.
func (v Values) Form() Form {
	return Form{Absent: v.absent, Except: v.except, List: v.list, Bound: v.bound, Low: v.low, High: v.high}
}

// Values are what the form spells.
func (f Form) Values() (Values, error) {
	if !slices.IsSorted(f.List) || hasRepeats(f.List) {
		return Values{}, errors.New("field List has to be sorted and without repeats")
	}
	return Values{absent: f.Absent, except: f.Except, list: f.List, bound: f.Bound, low: f.Low, high: f.High}, nil
}
