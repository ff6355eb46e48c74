package price

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Shape is what an instance type is made of, as far as its price follows from that.
type Shape struct {
	Type           string
	VCPUs          int64
	MemoryMiB      int64
	DiskGB         int64 // of all disks in the machine
	AcceleratorMiB int64 // memory of all accelerators
}

// referencePlace is the place whose embedded prices are the newest and the most complete.
const referencePlace = "us-east-1"

// Learn takes in which types are sold. Estimates are made by comparing types with one another.
func (b *Book) Learn(shapes []Shape) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Equal(b.shapes, shapes) {
		return
	}
	b.shapes = slices.Clone(shapes)
	b.estimator = nil
	b.revision++
}

// Estimate is what a type probably costs whose price is not known; false if there is nothing to go by, or if the price
// of the kind is known to be none: what is not in the spot price history is not sold as spot. An estimate is the first
// of these:
//
//   - its price in us-east-1, times what types of the same kind cost here in proportion to there (half of such
//     estimates are
//     within 0.1 %, nine of ten within 2 %);
//   - the price of the sibling in its family that is nearest in size, in proportion to memory (exact for most);
//   - the same of the nearest generation of its kind (half within 9 %, nine of ten within 26 %), unless it has
//     accelerators;
//   - a sum over vCPUs, memory, disks and the memory of accelerators, with the weights that fit the known prices best
//     (half
//     within 31 %, with accelerators 17 %).
func (b *Book) Estimate(instanceType string, kind Kind) (float64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if kind == Spot && b.spot != nil {
		return 0, false
	}
	if b.estimator == nil {
		b.estimator = b.newEstimator()
	}
	p := b.estimator.estimate(instanceType)
	return p, p > 0
}

// estimator compares types. It is made anew when a price or the list of types changes.
type estimator struct {
	shapes    map[string]Shape
	here      map[string]float64 // prices of the region: those that are known, and what follows from the reference
	reference *Table
	ratios    map[string]float64 // what a kind costs here in proportion to the reference; "" is the ratio of all types
	weights   map[bool][]float64 // of types with and without accelerators
	known     map[string]float64 // what was estimated
}

func (b *Book) newEstimator() *estimator {
	e := &estimator{shapes: map[string]Shape{}, here: map[string]float64{}, ratios: map[string]float64{},
		weights: map[bool][]float64{}, known: map[string]float64{}}
	for _, s := range b.shapes {
		e.shapes[s.Type] = s
	}
	for name, q := range b.table.prices {
		e.here[name] = q.onDemand
	}
	for name, p := range b.onDemand {
		e.here[name] = p
	}
	if table, err := Embedded(referencePlace); err == nil {
		// The same file gave the region's table, so there is no error.
		e.reference = table
	}
	all := map[string][]float64{}
	for name, p := range e.here {
		if there, ok := e.reference.OnDemand(name); ok {
			kind, _ := kindOf(name)
			all[kind], all[""] = append(all[kind], p/there), append(all[""], p/there)
		}
	}
	for kind, ratios := range all {
		e.ratios[kind] = median(ratios)
	}
	for name := range e.shapes {
		if p := e.byReference(name); e.here[name] == 0 && p > 0 {
			e.here[name] = p
		}
	}
	return e
}

func (e *estimator) estimate(name string) float64 {
	if p, ok := e.known[name]; ok {
		return p
	}
	p := 0.0
	for _, by := range []func(string) float64{e.byReference, e.bySibling, e.byGeneration, e.byParts} {
		if p = by(name); p > 0 {
			break
		}
	}
	p = math.Round(p*1e5) / 1e5
	e.known[name] = p
	return p
}

func (e *estimator) byReference(name string) float64 {
	there, ok := e.reference.OnDemand(name)
	if !ok {
		return 0
	}
	kind, _ := kindOf(name)
	ratio, ok := e.ratios[kind]
	if !ok {
		if ratio, ok = e.ratios[""]; !ok {
			ratio = 1 // a region of which nothing is known
		}
	}
	return there * ratio
}

func (e *estimator) bySibling(name string) float64 {
	family, _, _ := strings.Cut(name, ".")
	return e.scaled(name, func(other string) (int, bool) { return 0, strings.HasPrefix(other, family+".") })
}

func (e *estimator) byGeneration(name string) float64 {
	if e.shapes[name].AcceleratorMiB > 0 {
		return 0
	}
	kind, generation := kindOf(name)
	return e.scaled(name, func(other string) (int, bool) {
		k, g := kindOf(other)
		return max(g-generation, generation-g), k == kind && e.shapes[other].AcceleratorMiB == 0
	})
}

// scaled is the price of the nearest type, in proportion to memory: the nearest by the distance that is given, then by
// its accelerators, then by memory.
func (e *estimator) scaled(name string, distance func(other string) (int, bool)) float64 {
	s := e.shapes[name]
	best, found := []float64{}, ""
	for _, o := range e.shapes {
		away, ok := distance(o.Type)
		if e.here[o.Type] == 0 || !ok || o.Type == name || o.MemoryMiB == 0 || s.MemoryMiB == 0 {
			continue
		}
		size := math.Abs(math.Log2(float64(o.MemoryMiB) / float64(s.MemoryMiB)))
		rank := []float64{float64(away), math.Abs(float64(o.AcceleratorMiB - s.AcceleratorMiB)), size}
		if order := slices.Compare(rank, best); found == "" || order < 0 || order == 0 && o.Type < found {
			best, found = rank, o.Type
		}
	}
	if found == "" {
		return 0
	}
	return e.here[found] * float64(s.MemoryMiB) / float64(e.shapes[found].MemoryMiB)
}

// byParts adds up what the parts of the type cost.
func (e *estimator) byParts(name string) float64 {
	s, ok := e.shapes[name]
	if !ok {
		return 0
	}
	accelerated := s.AcceleratorMiB > 0
	if e.weights[accelerated] == nil {
		e.weights[accelerated] = e.fit(accelerated)
	}
	sum := 0.0
	for i, part := range s.parts() {
		sum += part * e.weights[accelerated][i]
	}
	return sum
}

func (s Shape) parts() []float64 {
	return []float64{float64(s.VCPUs), float64(s.MemoryMiB), float64(s.DiskGB), float64(s.AcceleratorMiB)}
}

// kindPattern takes a family to pieces: m, 8, gd.
var kindPattern = regexp.MustCompile(`^([a-z]+)-?(\d*)([a-z0-9-]*)$`)

// kindOf is what families of all generations have in common: mgd of m8gd and m7gd. And the generation.
func kindOf(name string) (kind string, generation int) {
	family, _, _ := strings.Cut(name, ".")
	m := kindPattern.FindStringSubmatch(family)
	if m == nil {
		return family, 0
	}
	generation, _ = strconv.Atoi(m[2]) // none is 0
	return m[1] + m[3], generation
}

func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
