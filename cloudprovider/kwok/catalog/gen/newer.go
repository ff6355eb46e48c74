package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// newerFiles are two files of the AWS provider, whose sources are newer than the data. Only types that the data does
// not know are taken from them.
type newerFiles struct{ types, prices string }

const (
	// newerRegion is where the newer prices are from. The region of the catalog asks the same there for every type of
	// the data.
	newerRegion = "us-east-1"
	// newerZones are where a newer type is sold, and newerSpotShare what it costs on spot in proportion to on demand:
	// the files say neither. Two of three types of the data are in all four zones.
	newerZones     = "1234"
	newerSpotShare = 0.4
)

// read returns the types that have no zones in the file: that is how it marks those that are newer than the data.
func (f newerFiles) read() ([]instance, error) {
	if f.types == "" || f.prices == "" {
		return nil, fmt.Errorf("-types or -prices is missing: name both files")
	}
	prices, err := os.ReadFile(f.prices)
	if err != nil {
		return nil, fmt.Errorf("reading the newer prices: %w", err)
	}
	onDemand := pricesOf(string(prices))
	file, err := os.Open(f.types)
	if err != nil {
		return nil, fmt.Errorf("reading the newer types: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("%s is not a list of types (%v); run go generate ./cloudprovider/aws/price",
			f.types, err)
	}
	index := map[string]int{}
	for i, column := range rows[0] {
		index[column] = i
	}
	var out []instance
	for _, row := range rows[1:] {
		cell := func(column string) string { return row[index[column]] }
		if cell("zones") == "" && onDemand[cell("name")] != "" {
			in, err := newerInstance(cell, onDemand[cell("name")])
			if err != nil {
				return nil, fmt.Errorf("instance type %s in %s: %w", cell("name"), f.types, err)
			}
			out = append(out, in)
		}
	}
	return out, nil
}

// pricesOf reads the on-demand prices of newerRegion.
func pricesOf(text string) map[string]string {
	out := map[string]string{}
	here := false
	for line := range strings.Lines(text) {
		if place, ok := strings.CutPrefix(line, "@"); ok {
			here = strings.HasPrefix(place, newerRegion+" ")
		} else if cells := strings.Split(line, ","); here && len(cells) == 3 {
			out[cells[0]] = cells[1]
		}
	}
	return out
}

func newerInstance(cell func(string) string, onDemand string) (instance, error) {
	var firstErr error
	number := func(column string) int {
		text := cell(column)
		if text == "" {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("column %s: %w", column, err)
		}
		return n
	}
	dollars, err := strconv.ParseFloat(onDemand, 64)
	if err != nil {
		return instance{}, err
	}
	in := instance{
		Name: cell("name"), VCPU: number("vcpu"), MemoryGiB: float64(number("memory_mib")) / 1024,
		Arch: strings.Fields(cell("arch")), Generation: "current",
		GPU: float64(number("gpus")), GPUModel: cell("gpu_model"),
		VPC:   &network{IPsPerENI: number("ips_per_eni"), MaxENIs: number("max_enis")},
		Zones: map[string][]string{},
		Pricing: map[string]regionPrices{region: {Linux: &linuxPrices{OnDemand: onDemand,
			Spot: []string{strconv.FormatFloat(dollars*newerSpotShare, 'f', 5, 64)}}}},
	}
	if cell("previous") != "" {
		in.Generation = "previous"
	}
	if disks := number("disks"); disks > 0 {
		in.Storage = &storage{Devices: disks, SizeGB: float64(number("disk_gb"))}
	}
	for _, digit := range newerZones {
		in.Zones[region] = append(in.Zones[region], zoneIDPrefix+string(digit))
	}
	return in, firstErr
}
