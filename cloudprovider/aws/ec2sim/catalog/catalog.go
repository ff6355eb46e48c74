// Package catalog is what the simulated EC2 sells: every instance type in the shape of DescribeInstanceTypes, the zones
// of every region, and prices.
//
// The facts are in an embedded file that cloudprovider/aws/price/gen makes; it holds what its source says and nothing
// else. What the source lacks (how many network cards, whether EFA is there, which accelerator has how many cores) is
// derived here by rules, each stated where it is applied. They are near to the real EC2, not equal to it: the simulator
// needs data of the right shape with plausible values, and a program that works only with one exact value is wrong.
//
// It reads its files and touches nothing else. The provider must not import it.
package catalog

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// types.csv is plain text for the same reason as the price table: it reads well in a diff.
//
//go:embed types.csv
var typesCSV string

// Types returns every instance type that is sold anywhere, ordered by name, with on-demand and spot as usage classes.
// Every call builds them anew, so the caller owns them.
func Types() ([]ec2types.InstanceTypeInfo, error) {
	rows, err := readRows()
	if err != nil {
		return nil, err
	}
	families := familiesOf(rows)
	out := make([]ec2types.InstanceTypeInfo, 0, len(rows))
	for i := range rows {
		out = append(out, rows[i].info(families))
	}
	return out, nil
}

// Region returns the instance types that a region sells, ordered by name, and the names of the zones that have each.
// Every call builds them anew, so the caller owns them.
func Region(region string) ([]ec2types.InstanceTypeInfo, map[string][]string, error) {
	prices, err := Prices(region)
	if err != nil {
		return nil, nil, err
	}
	rows, err := readRows()
	if err != nil {
		return nil, nil, err
	}
	digits := zoneDigits(prices.prefix, rows)
	families := familiesOf(rows)
	var types []ec2types.InstanceTypeInfo
	zones := map[string][]string{}
	for i := range rows {
		r := &rows[i]
		names := r.zoneNames(region, digits, prices)
		if len(names) == 0 {
			continue
		}
		info := r.info(families)
		if _, ok := prices.Spot(r.name, names[0]); !ok {
			info.SupportedUsageClasses = []ec2types.UsageClassType{ec2types.UsageClassTypeOnDemand}
		}
		types = append(types, info)
		zones[r.name] = names
	}
	return types, zones, nil
}

// readRows reads the embedded file, which is sorted by name.
func readRows() ([]row, error) {
	lines, err := csv.NewReader(strings.NewReader(typesCSV)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded instance types: %w", err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("reading the embedded instance types: the file is empty; run make generate")
	}
	index := map[string]int{}
	for i, column := range lines[0] {
		index[column] = i
	}
	rows := make([]row, 0, len(lines)-1)
	for _, line := range lines[1:] {
		r, err := readRow(index, line)
		if err != nil {
			return nil, fmt.Errorf("reading the embedded instance type %s: %w", line[0], err)
		}
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows, nil
}
