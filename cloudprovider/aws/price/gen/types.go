package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// factColumns are what EC2 says of a type.
func factColumns() []string {
	return []string{"name", "vcpu", "memory_mib", "arch", "previous", "pv", "processor", "features", "clock_mhz",
		"network", "cards", "ipv6",
		"placement", "gpus", "gpu_model", "gpu_memory_mib", "fpgas", "ebs", "ebs_mbps", "ebs_iops", "ebs_max_mbps",
		"ebs_max_iops", "disks", "disk_gb", "disk_kind", "max_enis", "ips_per_eni"}
}

// columns of the file; package ec2sim/catalog and the generator of kwok/catalog read it by these names.
func columns() []string { return append(factColumns(), "zones") }

// writeTypes writes every type that is sold in some zone, sorted by name, and returns their number. What EC2 itself
// said is taken before what the older source says of the same type; the zones only the older source knows. It derives
// nothing: the rules for what the sources lack are in package ec2sim/catalog, where they are tested.
func writeTypes(w io.Writer, s *source) (int, error) {
	rows, older := [][]string{}, map[string]string{}
	for i := range s.instances {
		in := &s.instances[i]
		zones, err := zoneText(in.Zones)
		if err != nil {
			return 0, fmt.Errorf("instance type %s: %w", in.Name, err)
		}
		if zones == "" || in.VCPU == 0 || in.MemoryGiB == 0 {
			continue // No longer sold, such as p2.xlarge.
		}
		older[in.Name] = zones
		if _, newer := s.facts[in.Name]; !newer {
			rows = append(rows, typeRow(in, zones))
		}
	}
	for name, facts := range s.facts {
		rows = append(rows, append(slices.Clone(facts), older[name]))
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for i := 1; i < len(rows); i++ {
		if rows[i][0] == rows[i-1][0] {
			return 0, fmt.Errorf("instance type %s appears twice in the source data", rows[i][0])
		}
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("the source data has no instance type with a zone")
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

func typeRow(in *instance, zones string) []string {
	disks, diskGB, diskKind := diskCells(in.Storage)
	enis, ips := "", ""
	if in.VPC != nil {
		enis, ips = positive(in.VPC.MaxENIs), positive(in.VPC.IPsPerENI)
	}
	return []string{
		in.Name,
		strconv.Itoa(in.VCPU),
		strconv.Itoa(int(math.Floor(in.MemoryGiB * 1024))),
		strings.Join(in.Arch, " "),
		flagText(in.Generation == "previous"),
		flagText(slices.Contains(in.Virtualization, "PV") && !slices.Contains(in.Virtualization, "HVM")),
		in.Processor,
		"", // what it can do
		clockMHz(in.Clock),
		in.Network,
		"", // its network cards
		flagText(in.IPv6),
		flagText(in.PlacementGroup),
		positive(int(in.GPU)),
		in.GPUModel,
		positive(int(in.GPUMemoryGiB * 1024)),
		positive(in.FPGA),
		"", // whether it is EBS-optimized
		positive(in.EBSBaseline),
		positive(in.EBSBaseIOPS),
		positive(in.EBSMaximum),
		positive(in.EBSMaxIOPS),
		disks, diskGB, diskKind,
		enis, ips,
		zones,
	}
}

func diskCells(s *storage) (count, gb, kind string) {
	if s == nil || s.Devices == 0 {
		return "", "", ""
	}
	kind = "hdd"
	if s.SSD {
		kind = "ssd"
	}
	if s.NVMe {
		kind += "-nvme"
	}
	return strconv.Itoa(s.Devices), strconv.Itoa(int(math.Floor(s.SizeGB))), kind
}

// clockMHz reads "3.5 GHz" and "Up to 3.7 GHz".
func clockMHz(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "Up to "), " GHz")
	ghz, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return ""
	}
	return positive(int(math.Round(ghz * 1000)))
}

// zoneText is "use1=126 usw2=123": the zones of each region by the numbers of their ids.
func zoneText(zones map[string][]string) (string, error) {
	var parts []string
	for _, region := range slices.Sorted(maps.Keys(zones)) {
		if len(zones[region]) == 0 {
			continue
		}
		prefix := ""
		var digits []string
		for _, id := range zones[region] {
			before, number, ok := strings.Cut(id, "-az")
			if !ok || len(number) != 1 || (prefix != "" && prefix != before) {
				return "", fmt.Errorf("zone id %q of region %s is not like %q", id, region, "use1-az1")
			}
			prefix = before
			digits = append(digits, number)
		}
		slices.Sort(digits)
		parts = append(parts, prefix+"="+strings.Join(slices.Compact(digits), ""))
	}
	return strings.Join(parts, " "), nil
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func flagText(b bool) string {
	if b {
		return "1"
	}
	return ""
}
