// Command gen writes the two data files that are made from the same source: the price table of every region
// (package price) and the shapes of every instance type (package ec2sim/catalog). Both are plain text, so that a change
// of the source reads well in a diff. It is a module of its own, so that 100 MB of source data never reach the
// product's go.mod.
//
// Run it with: go generate ./cloudprovider/aws/price
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
)

// options are where the data is read from and written to.
type options struct {
	prices, types      string // to write
	data, date         string // instead of the pinned module
	newer, facts, from string
}

func main() {
	o := options{}
	flag.StringVar(&o.prices, "prices", "", "price table to write (required)")
	flag.StringVar(&o.types, "types", "", "instance types to write (required)")
	flag.StringVar(&o.data, "data", "", "instances.json to read; by default the one in the pinned module "+sourceModule)
	flag.StringVar(&o.date, "date", "", "with -data: the day that the data was taken, such as 2025-05-28")
	flag.StringVar(&o.newer, "newer", "", "folder of newer on-demand prices; by default the one in the pinned module "+
		newerModule)
	flag.StringVar(&o.facts, "facts", factsFile, "what EC2 says of its instance types")
	flag.StringVar(&o.from, "import", "", "only write -facts, from this answer of DescribeInstanceTypes (an object "+
		"by type, .json.gz)")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.from != "" {
		return importFacts(o.from, o.facts)
	}
	if o.prices == "" || o.types == "" {
		return fmt.Errorf("-prices or -types is missing: name both files to write")
	}
	s, err := load(o.data, o.date)
	if err != nil {
		return err
	}
	if s.newer, err = newerPrices(o.newer); err != nil {
		return err
	}
	if s.facts, err = readFacts(o.facts); err != nil {
		return err
	}
	if err := writeFile(o.prices, s, writePrices); err != nil {
		return err
	}
	return writeFile(o.types, s, writeTypes)
}

func writeFile(path string, s *source, write func(io.Writer, *source) (int, error)) error {
	var buf bytes.Buffer
	n, err := write(&buf, s)
	if err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	fmt.Printf("%s: %d entries, %d bytes\n", path, n, buf.Len())
	return nil
}
