package require

import "slices"

// Among lists the values that a key has in the rows, sorted; absent says that some row lacks the key.
func (x *Index) Among(key string, rows Bits) (values []string, absent bool) {
	col := x.keys[key]
	if col == nil {
		return nil, rows.Any()
	}
	for i, value := range col.values {
		if col.rows[i].Meets(rows) {
			values = append(values, value)
		}
	}
	return values, col.absent.Meets(rows)
}

// Meets reports whether the sets have a row in common.
func (b Bits) Meets(c Bits) bool {
	for i := range b {
		if b[i]&c[i] != 0 {
			return true
		}
	}
	return false
}

// Within reports whether every state that v allows is one that w allows, too.
func (v Values) Within(w Values) bool {
	both := v.And(w)
	return both.absent == v.absent && both.except == v.except && slices.Equal(both.list, v.list) &&
		both.bound == v.bound && (!v.bound || both.low == v.low && both.high == v.high)
}
