package main

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// factsFile holds what DescribeInstanceTypes said of each type, one line a type, without zones. -import writes it.
const factsFile = "ec2-2026-08.csv"

// ec2Type is what we read of an instance type in an answer of DescribeInstanceTypes.
type ec2Type struct {
	InstanceType                 string
	CurrentGeneration            bool
	SupportedVirtualizationTypes []string
	VCpuInfo                     struct{ DefaultVCpus int }
	MemoryInfo                   struct{ SizeInMiB int }
	ProcessorInfo                struct {
		Manufacturer             string
		SupportedArchitectures   []string
		SupportedFeatures        []string
		SustainedClockSpeedInGhz float64
	}
	PlacementGroupInfo struct{ SupportedStrategies []string }
	EbsInfo            struct {
		EbsOptimizedSupport string
		EbsOptimizedInfo    ebsFacts
	}
	InstanceStorageInfo struct {
		Disks []struct {
			Count, SizeInGB int
			Type            string
		}
		NvmeSupport string
	}
	GpuInfo     struct{ Gpus []deviceFacts }
	NeuronInfo  struct{ NeuronDevices []deviceFacts }
	FpgaInfo    struct{ Fpgas []deviceFacts }
	NetworkInfo struct {
		NetworkPerformance                                  string
		Ipv6Supported                                       bool
		MaximumNetworkInterfaces, Ipv4AddressesPerInterface int
		NetworkCards                                        []cardFacts
	}
}

type ebsFacts struct {
	BaselineBandwidthInMbps, BaselineIops, MaximumBandwidthInMbps, MaximumIops int
}

type deviceFacts struct {
	Count, LogicalGpuCount int
	Manufacturer, Name     string
	MemoryInfo             struct{ SizeInMiB int }
}

type cardFacts struct {
	BaselineBandwidthInGbps, PeakBandwidthInGbps float64
	MaximumNetworkInterfaces                     int
}

// importFacts reads an answer, as an object of types by name in a file packed with gzip, and writes what we use of it.
func importFacts(from, to string) error {
	packed, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("reading the answer of DescribeInstanceTypes: %w", err)
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", from, err)
	}
	types := map[string]ec2Type{}
	if err := json.NewDecoder(plain).Decode(&types); err != nil {
		return fmt.Errorf("parsing %s: %w", from, err)
	}
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("writing the facts: %w", err)
	}
	defer out.Close()
	return writeFacts(out, types)
}

func writeFacts(w io.Writer, types map[string]ec2Type) error {
	out := csv.NewWriter(w)
	rows := [][]string{factColumns()}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t := types[name]
		if t.InstanceType != name {
			return fmt.Errorf("the entry %s is about %q", name, t.InstanceType)
		}
		rows = append(rows, t.row())
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("writing the facts: %w", err)
	}
	return nil
}

func (t *ec2Type) row() []string {
	disks, diskGB, diskKind := t.disks()
	devices, model, memory := t.devices()
	fpgas := 0
	if len(t.FpgaInfo.Fpgas) > 0 {
		fpgas = t.FpgaInfo.Fpgas[0].Count
	}
	virtual, e := t.SupportedVirtualizationTypes, t.EbsInfo.EbsOptimizedInfo
	return []string{
		t.InstanceType,
		strconv.Itoa(t.VCpuInfo.DefaultVCpus),
		strconv.Itoa(t.MemoryInfo.SizeInMiB),
		strings.Join(t.ProcessorInfo.SupportedArchitectures, " "),
		flagText(!t.CurrentGeneration),
		flagText(slices.Contains(virtual, "paravirtual") && !slices.Contains(virtual, "hvm")),
		t.ProcessorInfo.Manufacturer,
		strings.Join(t.ProcessorInfo.SupportedFeatures, " "),
		positive(int(t.ProcessorInfo.SustainedClockSpeedInGhz*1000 + 0.5)),
		t.NetworkInfo.NetworkPerformance,
		t.cards(),
		flagText(t.NetworkInfo.Ipv6Supported),
		flagText(slices.Contains(t.PlacementGroupInfo.SupportedStrategies, "cluster")),
		positive(devices), model, positive(memory),
		positive(fpgas),
		t.EbsInfo.EbsOptimizedSupport,
		positive(e.BaselineBandwidthInMbps), positive(e.BaselineIops), positive(e.MaximumBandwidthInMbps),
		positive(e.MaximumIops),
		disks, diskGB, diskKind,
		positive(t.NetworkInfo.MaximumNetworkInterfaces), positive(t.NetworkInfo.Ipv4AddressesPerInterface),
	}
}

// cards writes baseline and peak in Gbit/s and the number of interfaces of each card; equal neighbours as one, with how
// many.
func (t *ec2Type) cards() string {
	var out []string
	cards := t.NetworkInfo.NetworkCards
	for i := 0; i < len(cards); {
		n := 1
		for i+n < len(cards) && cards[i+n] == cards[i] {
			n++
		}
		c := cards[i]
		out = append(out, fmt.Sprintf("%s/%s/%dx%d", decimal(c.BaselineBandwidthInGbps), decimal(c.PeakBandwidthInGbps),
			c.MaximumNetworkInterfaces, n))
		i += n
	}
	return strings.Join(out, " ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (t *ec2Type) disks() (count, gb, kind string) {
	if len(t.InstanceStorageInfo.Disks) == 0 {
		return "", "", ""
	}
	d := t.InstanceStorageInfo.Disks[0]
	kind = d.Type
	if t.InstanceStorageInfo.NvmeSupport == "required" {
		kind += "-nvme"
	}
	return strconv.Itoa(d.Count), strconv.Itoa(d.SizeInGB), kind
}

// devices are the accelerators of the type, if it has some, with the memory of all together. One that is a part of a
// GPU counts as one.
func (t *ec2Type) devices() (count int, model string, memoryMiB int) {
	for _, d := range t.GpuInfo.Gpus {
		n := max(d.Count, d.LogicalGpuCount)
		return n, d.Manufacturer + " " + d.Name, n * d.MemoryInfo.SizeInMiB
	}
	for _, d := range t.NeuronInfo.NeuronDevices {
		return d.Count, "AWS " + d.Name, d.Count * d.MemoryInfo.SizeInMiB
	}
	return 0, "", 0
}

// readFacts reads the file that importFacts wrote, by name.
func readFacts(path string) (map[string][]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the facts: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading the facts in %s: %w", path, err)
	}
	if len(rows) < 2 || !slices.Equal(rows[0], factColumns()) {
		return nil, fmt.Errorf("%s has other columns than %s; write it anew with -import", path,
			strings.Join(factColumns(), ","))
	}
	out := map[string][]string{}
	for _, row := range rows[1:] {
		out[row[0]] = row
	}
	return out, nil
}
