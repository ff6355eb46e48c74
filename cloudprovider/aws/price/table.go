package price

import (
	"bufio"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:generate go run -C gen . -prices ../prices.txt -types ../../ec2sim/catalog/types.csv

// prices.txt is written by gen, which also says what its lines mean. It is plain text: half a megabyte that reads well
// in a diff is worth more than a hundred kilobytes that does not.
//
//go:embed prices.txt
var embedded string

// Table is what the product knows of prices before it has asked anybody: those of one place on the day that the
// embedded file was made. It never changes.
type Table struct {
	date   time.Time
	prices map[string]quote
}

type quote struct {
	onDemand float64
	spot     []float64
}

// Embedded is the table of a region or of a Local Zone (us-west-2-lax-1). A place that the file does not know, such as
// a region that opened later, has a table without prices and without a date.
func Embedded(place string) (*Table, error) {
	t := &Table{prices: map[string]quote{}}
	_, section, found := strings.Cut(embedded, "\n@"+place+" ")
	if !found {
		return t, nil
	}
	section, _, _ = strings.Cut(section, "\n@")
	day, body, _ := strings.Cut(section, "\n")
	var err error
	if t.date, err = time.Parse(time.DateOnly, day); err != nil {
		return nil, fmt.Errorf("reading the embedded prices of %s: %q is not a date; run make generate", place, day)
	}
	scanner := bufio.NewScanner(strings.NewReader(body))
	for scanner.Scan() {
		name, q, err := parseLine(scanner.Text())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded prices of %s: %w", place, err)
		}
		t.prices[name] = q
	}
	return t, nil
}

// Places lists the regions and Local Zones of the embedded file, sorted.
func Places() []string {
	var out []string
	for line := range strings.Lines(embedded) {
		if head, ok := strings.CutPrefix(line, "@"); ok {
			place, _, _ := strings.Cut(head, " ")
			out = append(out, place)
		}
	}
	slices.Sort(out)
	return out
}

// Date is the day that the prices are from.
func (t *Table) Date() time.Time { return t.date }

// OnDemand is the price of the type for Linux; false if the place doesn't sell it.
func (t *Table) OnDemand(instanceType string) (float64, bool) {
	q, ok := t.prices[instanceType]
	return q.onDemand, ok
}

// SpotZones are the spot prices that were seen in the place's zones, in no order that says which zone had which. Empty
// if there were none.
func (t *Table) SpotZones(instanceType string) []float64 {
	return slices.Clone(t.prices[instanceType].spot)
}

// Types lists the instance types that have a price, sorted.
func (t *Table) Types() []string {
	out := make([]string, 0, len(t.prices))
	for name := range t.prices {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func parseLine(line string) (string, quote, error) {
	cells := strings.Split(line, ",")
	if len(cells) != 3 || cells[0] == "" {
		return "", quote{}, fmt.Errorf("line %q is not a type, a price and spot prices; run make generate", line)
	}
	onDemand, err := parsePrice(cells[1])
	if err != nil {
		return "", quote{}, fmt.Errorf("line %q: %w", line, err)
	}
	q := quote{onDemand: onDemand}
	for _, text := range strings.Fields(cells[2]) {
		p, err := parsePrice(text)
		if err != nil {
			return "", quote{}, fmt.Errorf("line %q: %w", line, err)
		}
		q.spot = append(q.spot, p)
	}
	return cells[0], q, nil
}

func parsePrice(text string) (float64, error) {
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || p <= 0 {
		return 0, fmt.Errorf("%q is not a price above zero", text)
	}
	return p, nil
}
