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

func main() {
	prices := flag.String("prices", "", "price table to write (required)")
	types := flag.String("types", "", "instance types to write (required)")
	data := flag.String("data", "", "instances.json to read; by default the one in the pinned module "+sourceModule)
	date := flag.String("date", "", "with -data: the day that the data was taken, such as 2025-05-28")
	flag.Parse()
	if err := run(*data, *date, *prices, *types); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(data, date, prices, types string) error {
	if prices == "" || types == "" {
		return fmt.Errorf("-prices or -types is missing: name both files to write")
	}
	s, err := load(data, date)
	if err != nil {
		return err
	}
	if err := writeFile(prices, s, writePrices); err != nil {
		return err
	}
	return writeFile(types, s, writeTypes)
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
