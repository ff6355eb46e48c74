package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// quote is what a place asks for a type: on demand, and on spot in the zones that the source saw. Dollars per hour.
type quote struct{ onDemand, spot string }

// writePrices writes the price table and returns how many prices of a type in a place it has. A line "@place day"
// begins the prices of a region or a Local Zone as of that day; each line below is a type, its on-demand price for
// Linux, and the spot prices that the source saw in the place's zones (it does not say which zone has which).
func writePrices(w io.Writer, s *source) (int, error) {
	places, known := placesOf(s)
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# EC2 prices for Linux, from %s and %s. Made by go generate; do not edit.\n", sourceModule,
		newerModule)
	n := 0
	for _, place := range slices.Sorted(maps.Keys(places)) {
		date := s.date
		if newer, ok := s.newer[place]; ok && (newer.date > date || !known[place]) {
			date = newer.date
		}
		fmt.Fprintf(out, "@%s %s\n", place, date)
		for _, name := range slices.Sorted(maps.Keys(places[place])) {
			q := places[place][name]
			fmt.Fprintf(out, "%s,%s,%s\n", name, q.onDemand, q.spot)
		}
		n += len(places[place])
	}
	if n == 0 {
		return 0, fmt.Errorf("the source data has no prices")
	}
	return n, out.Flush()
}

// placesOf puts the prices of both sources together: the newer on-demand price holds, except of bare metal. known are
// the places of the first source.
func placesOf(s *source) (places map[string]map[string]quote, known map[string]bool) {
	places, known = map[string]map[string]quote{}, map[string]bool{}
	put := func(place, name string, q quote) {
		if places[place] == nil {
			places[place] = map[string]quote{}
		}
		places[place][name] = q
	}
	for i := range s.instances {
		in := &s.instances[i]
		for place, prices := range in.Pricing {
			if q, ok := quoteOf(prices); ok {
				put(place, in.Name, q)
				known[place] = true
			}
		}
	}
	for place, newer := range s.newer {
		for name, onDemand := range newer.prices {
			q, older := places[place][name]
			if onDemand == "" || older && (bareMetal(name) || newer.date < s.date) {
				continue
			}
			put(place, name, quote{onDemand: onDemand, spot: q.spot})
		}
	}
	return places, known
}

func quoteOf(prices regionPrices) (quote, bool) {
	if prices.Linux == nil {
		return quote{}, false
	}
	onDemand := price(prices.Linux.OnDemand)
	if onDemand == "" {
		return quote{}, false
	}
	var spot []string
	for _, text := range prices.Linux.Spot {
		if p := price(text); p != "" {
			spot = append(spot, p)
		}
	}
	return quote{onDemand: onDemand, spot: strings.Join(spot, " ")}, true
}

// price is the shortest text of a price above zero; empty if there is none.
func price(text string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
