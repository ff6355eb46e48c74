package main

import (
	"encoding/csv"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The region that the catalog describes. Zone ids of the data (usw2-az1) become the letters that zone names end in;
// which letter stands for which id differs between real accounts, so az1 is a by our choice.
const (
	region       = "us-west-2"
	zoneIDPrefix = "usw2-az"
)

// instance is what we read of an entry of instances.json.
type instance struct {
	Name       string                  `json:"instance_type"`
	VCPU       int                     `json:"vCPU"`
	MemoryGiB  float64                 `json:"memory"`
	Arch       []string                `json:"arch"`
	Generation string                  `json:"generation"`
	GPU        float64                 `json:"GPU"`
	GPUModel   string                  `json:"GPU_model"`
	Storage    *storage                `json:"storage"`
	VPC        *network                `json:"vpc"`
	Zones      map[string][]string     `json:"availability_zones"`
	Pricing    map[string]regionPrices `json:"pricing"`
}

type storage struct {
	Devices int     `json:"devices"`
	SizeGB  float64 `json:"size"`
}

type network struct {
	IPsPerENI int `json:"ips_per_eni"`
	MaxENIs   int `json:"max_enis"`
}

type regionPrices struct {
	Linux *linuxPrices `json:"linux"`
}

type linuxPrices struct {
	OnDemand string   `json:"ondemand"`
	Spot     []string `json:"spot"`
}

// columns of the file; package catalog reads it by these names.
func columns() []string {
	return []string{"name", "vcpu", "memory_mib", "arch", "accelerator", "accelerators", "storage_gb", "max_enis",
		"ips_per_eni", "zones", "on_demand", "spot"}
}

// write writes the instances that the catalog keeps, sorted by name, and returns their number.
func write(w io.Writer, instances []instance) (int, error) {
	rows := [][]string{}
	for i := range instances {
		if row, ok := row(&instances[i]); ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for i := 1; i < len(rows); i++ {
		if rows[i][0] == rows[i-1][0] {
			return 0, fmt.Errorf("instance type %s appears twice in the source data", rows[i][0])
		}
	}
	out := csv.NewWriter(w)
	if err := out.Write(columns()); err != nil {
		return 0, fmt.Errorf("writing the header: %w", err)
	}
	if err := out.WriteAll(rows); err != nil {
		return 0, fmt.Errorf("writing the rows: %w", err)
	}
	return len(rows), nil
}

// row is the line of one instance type; false for those that nobody would run a node on: without a price or a zone in
// the region, of a previous generation, without known network limits, or made to run macOS.
func row(in *instance) ([]string, bool) {
	linux := in.Pricing[region].Linux
	zones := zoneLetters(in.Zones[region])
	arch := architecture(in.Arch)
	if linux == nil || in.Generation != "current" || in.VPC == nil || zones == "" || arch == "" ||
		in.VCPU == 0 || in.MemoryGiB == 0 || strings.HasPrefix(in.Name, "mac") {
		return nil, false
	}
	onDemand := price(linux.OnDemand)
	if onDemand == "" {
		return nil, false
	}
	accelerator, count := accelerators(in)
	storageGB := ""
	if in.Storage != nil {
		storageGB = positive(int(math.Floor(float64(in.Storage.Devices) * in.Storage.SizeGB)))
	}
	return []string{
		in.Name,
		strconv.Itoa(in.VCPU),
		strconv.Itoa(int(math.Round(in.MemoryGiB * 1024))),
		arch,
		accelerator,
		positive(count),
		storageGB,
		strconv.Itoa(in.VPC.MaxENIs),
		strconv.Itoa(in.VPC.IPsPerENI),
		zones,
		onDemand,
		strings.Join(spotByZone(in.Name, zones, linux.Spot), " "),
	}, true
}

func zoneLetters(ids []string) string {
	var letters []string
	for _, id := range ids {
		n, err := strconv.Atoi(strings.TrimPrefix(id, zoneIDPrefix))
		if err == nil && n >= 1 && n <= 26 {
			letters = append(letters, string(rune('a'+n-1)))
		}
	}
	slices.Sort(letters)
	return strings.Join(slices.Compact(letters), "")
}

func architecture(names []string) string {
	switch {
	case slices.Contains(names, "x86_64"):
		return "amd64"
	case slices.Contains(names, "arm64"):
		return "arm64"
	default:
		return ""
	}
}

// accelerators is the extended resource that the device plugin of the type's accelerators announces, and how many.
func accelerators(in *instance) (string, int) {
	if strings.HasPrefix(in.Name, "dl1.") { // The source data doesn't know Gaudi; a dl1 has eight.
		return "habana.ai/gaudi", 8
	}
	count := int(in.GPU)
	switch {
	case count == 0:
		return "", 0
	case strings.HasPrefix(in.GPUModel, "NVIDIA"):
		return "nvidia.com/gpu", count
	case strings.HasPrefix(in.GPUModel, "AMD"):
		return "amd.com/gpu", count
	case strings.HasPrefix(in.GPUModel, "AWS"): // Inferentia and Trainium, which the data calls Inferentia too.
		return "aws.amazon.com/neuron", count
	default:
		return "", 0
	}
}

// spotByZone gives each zone one of the region's spot prices. The prices are real; the data does not say which zone
// has which, so they are dealt out in an order that depends on the type's name only. With fewer prices than zones,
// zones share them.
func spotByZone(name, zones string, texts []string) []string {
	var prices []string
	for _, text := range texts {
		if p := price(text); p != "" {
			prices = append(prices, p)
		}
	}
	if len(prices) == 0 {
		return nil
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	start := int(hash.Sum32() % 64)
	out := make([]string, 0, len(zones))
	for i := range zones {
		out = append(out, prices[(start+i)%len(prices)])
	}
	return out
}

// price is the shortest text of a price above zero; empty if there is none.
func price(text string) string {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value <= 0 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
