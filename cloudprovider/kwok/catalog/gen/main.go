// Command gen writes the default catalog of the simulated cloud: EC2's shapes and prices in one region, as a small CSV
// file that is embedded in the product and read well in a diff. It is a module of its own, so that 100 MB of source
// data never reach the product's go.mod.
//
// Run it with: go generate ./cloudprovider/kwok/catalog
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const sourceModule = "github.com/LeanerCloud/ec2-instances-info"

func main() {
	out := flag.String("out", "", "file to write (required)")
	newer := newerFiles{}
	flag.StringVar(&newer.types, "types", "", "instance types that are newer than the data, as "+
		"cloudprovider/aws/price/gen writes them (required)")
	flag.StringVar(&newer.prices, "prices", "", "their prices, by the same (required)")
	data := flag.String("data", "", "instances.json to read; by default the one in the pinned module "+sourceModule)
	flag.Parse()
	if err := run(*data, *out, newer); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(data, out string, newer newerFiles) error {
	if out == "" {
		return fmt.Errorf("-out is missing: name the CSV file to write")
	}
	if data == "" {
		dir, err := moduleDir()
		if err != nil {
			return err
		}
		data = filepath.Join(dir, "data", "instances.json")
	}
	raw, err := os.ReadFile(data)
	if err != nil {
		return fmt.Errorf("reading the source data: %w", err)
	}
	var instances []instance
	if err := json.Unmarshal(raw, &instances); err != nil {
		return fmt.Errorf("parsing %s: %w", data, err)
	}
	recent, err := newer.read()
	if err != nil {
		return err
	}
	instances = append(instances, recent...)
	var buf bytes.Buffer
	written, err := write(&buf, instances)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	fmt.Printf("%s: %d of %d instance types, %d bytes\n", out, written, len(instances), buf.Len())
	return nil
}

// moduleDir downloads the pinned module, if it is not there yet, and says where it is.
func moduleDir() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", sourceModule)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(text, &answer); jsonErr == nil && answer.Error != "" {
		return "", fmt.Errorf("downloading %s: %s", sourceModule, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s (run this in the gen folder): %w", sourceModule, err)
	}
	return answer.Dir, nil
}
