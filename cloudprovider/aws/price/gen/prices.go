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

// writePrices writes the price table and returns how many prices of a type in a place it has. A line "@place" begins
// the prices of a region or a Local Zone; each line below is a type, its on-demand price for Linux, and the spot
// prices that the source saw in the place's zones (it does not say which zone has which). Dollars per hour.
func writePrices(w io.Writer, s *source) (int, error) {
	places := map[string][]string{}
	for i := range s.instances {
		in := &s.instances[i]
		for place, prices := range in.Pricing {
			if line, ok := priceLine(in.Name, prices); ok {
				places[place] = append(places[place], line)
			}
		}
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# EC2 prices for Linux as of %s, from %s. Made by go generate; do not edit.\n", s.date, sourceModule)
	fmt.Fprintf(out, "%s\n", s.date)
	n := 0
	for _, place := range slices.Sorted(maps.Keys(places)) {
		lines := places[place]
		slices.Sort(lines)
		fmt.Fprintf(out, "@%s\n%s\n", place, strings.Join(lines, "\n"))
		n += len(lines)
	}
	if n == 0 {
		return 0, fmt.Errorf("the source data has no prices")
	}
	return n, out.Flush()
}

func priceLine(name string, prices regionPrices) (string, bool) {
	if prices.Linux == nil {
		return "", false
	}
	onDemand := price(prices.Linux.OnDemand)
	if onDemand == "" {
		return "", false
	}
	var spot []string
	for _, text := range prices.Linux.Spot {
		if p := price(text); p != "" {
			spot = append(spot, p)
		}
	}
	return name + "," + onDemand + "," + strings.Join(spot, " "), true
}

// price is the shortest text of a price above zero; empty if there is none.
func price(text string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
