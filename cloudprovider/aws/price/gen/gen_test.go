package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const data = `[
	{"instance_type": "m5.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "current",
	 "physical_processor": "Intel Xeon",
	 "clock_speed_ghz": "Up to 3.1 GHz", "network_performance": "Up to 10 Gigabit", "ipv6_support": true,
	  "placement_group_support": true,
	 "ebs_baseline_bandwidth": 650, "ebs_max_bandwidth": 4750, "ebs_baseline_iops": 3600, "ebs_iops": 18750,
	 "vpc": {"ips_per_eni": 10, "max_enis": 3}, "availability_zones": {"us-west-2": ["usw2-az3", "usw2-az1"],
	  "eu-west-1": ["euw1-az2"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.0960", "spot": ["0.036600", "0.047200", "0"]}},
	  "eu-west-1": {"linux": {"ondemand": "0.107"}}, "eu-west-2": {"mswin": {}}}},
	{"instance_type": "g5.xlarge", "vCPU": 4, "memory": 16.5, "arch": ["x86_64"], "generation": "current", "GPU": 1,
	 "GPU_model": "NVIDIA A10G", "GPU_memory": 24,
	 "clock_speed_ghz": null, "storage": {"devices": 2, "size": 125, "ssd": true, "nvme_ssd": true},
	  "availability_zones": {"us-west-2": ["usw2-az1"]},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "1.006"}}}},
	{"instance_type": "m5.metal", "pricing": {"us-west-2": {"linux": {"ondemand": "4.608"}}}},
	{"instance_type": "gone.large", "vCPU": 2, "memory": 8.0, "arch": ["x86_64"], "generation": "previous",
	 "availability_zones": {},
	 "pricing": {"us-west-2": {"linux": {"ondemand": "0.2"}}, "us-west-2-lax-1": {"linux": {"ondemand": "0.0"}}}}
]`

// newer prices, in the form of the module that they are read from.
const newerText = `package pricing

// generated at 2026-07-06T14:20:29Z for us-west-2

var prices = map[string]map[string]float64{
	"us-west-2": {"m5.large": 0.090000, "m5.metal": 5.000000, "m9g.large": 0.100000, "free.large": 0},
}
`

// olderText has prices of another place than the rest: those that are there stay.
const olderText = `package pricing

// generated at 2024-11-06T01:00:11Z for eu-west-1

var prices = map[string]map[string]float64{"eu-west-1": {"m5.large": 0.5, "c4.large": 0.1},
	"cn-north-1": {"c4.large": 0.7}}
`

// answer of DescribeInstanceTypes, by type.
const answer = `{
	"m9g.large": {"InstanceType": "m9g.large", "CurrentGeneration": true, "SupportedVirtualizationTypes": ["hvm"],
	 "VCpuInfo": {"DefaultVCpus": 2},
	 "MemoryInfo": {"SizeInMiB": 8192}, "ProcessorInfo": {"Manufacturer": "AWS", "SupportedArchitectures": ["arm64"],
	  "SustainedClockSpeedInGhz": 2.8},
	 "NetworkInfo": {"NetworkPerformance": "Up to 15 Gigabit", "Ipv6Supported": true, "MaximumNetworkInterfaces": 3,
	  "Ipv4AddressesPerInterface": 10,
	  "NetworkCards": [{"BaselineBandwidthInGbps": 1.25, "PeakBandwidthInGbps": 15, "MaximumNetworkInterfaces": 3}]}},
	"g5.xlarge": {"InstanceType": "g5.xlarge", "CurrentGeneration": true, "SupportedVirtualizationTypes": ["hvm"],
	 "VCpuInfo": {"DefaultVCpus": 4},
	 "MemoryInfo": {"SizeInMiB": 16384}, "ProcessorInfo": {"Manufacturer": "AMD", "SupportedArchitectures": ["x86_64"],
	  "SupportedFeatures": ["amd-sev-snp"], "SustainedClockSpeedInGhz": 3.3},
	 "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "spread"]},
	 "EbsInfo": {"EbsOptimizedSupport": "default", "EbsOptimizedInfo": {"BaselineBandwidthInMbps": 700,
	  "BaselineIops": 3000, "MaximumBandwidthInMbps": 3500, "MaximumIops": 15000}},
	 "InstanceStorageInfo": {"Disks": [{"Count": 1, "SizeInGB": 250, "Type": "ssd"}], "NvmeSupport": "required"},
	 "GpuInfo": {"Gpus": [{"Count": 0, "LogicalGpuCount": 1, "Manufacturer": "NVIDIA", "Name": "A10G",
	  "MemoryInfo": {"SizeInMiB": 24576}}]},
	 "NetworkInfo": {"NetworkPerformance": "3 Gigabit", "MaximumNetworkInterfaces": 8, "Ipv4AddressesPerInterface": 15,
	  "NetworkCards": [
	  {"BaselineBandwidthInGbps": 2, "PeakBandwidthInGbps": 2, "MaximumNetworkInterfaces": 4},
	   {"BaselineBandwidthInGbps": 2, "PeakBandwidthInGbps": 2, "MaximumNetworkInterfaces": 4}]}}
}`

func generate(t *testing.T, text string) (prices, types string, err error) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte(answer)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	file("zz_generated.pricing_new.go", newerText)
	file("zz_generated.pricing_old.go", olderText)
	o := options{data: file("in.json", text), date: "2025-05-28", newer: dir, facts: filepath.Join(dir, "facts"),
		prices: filepath.Join(dir, "prices"), types: filepath.Join(dir, "types")}
	if err := run(options{from: file("answer.json.gz", packed.String()), facts: o.facts}); err != nil {
		t.Fatal(err)
	}
	if err := run(o); err != nil {
		return "", "", err
	}
	a, errA := os.ReadFile(o.prices)
	b, errB := os.ReadFile(o.types)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	return string(a), string(b), nil
}

func TestGenerate(t *testing.T) {
	prices, types, err := generate(t, data)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(prices, "\n")
	want := []string{
		"@cn-north-1 2024-11-06", "c4.large,0.7,",
		"@eu-west-1 2025-05-28", "c4.large,0.1,", "m5.large,0.107,",
		"@us-west-2 2026-07-06", "g5.xlarge,1.006,", "gone.large,0.2,", "m5.large,0.09,0.0366 0.0472",
		"m5.metal,4.608,", "m9g.large,0.1,", "",
	}
	if want := strings.Join(want, "\n"); body != want {
		t.Errorf("prices\n got %q\nwant %q", body, want)
	}
	lines := strings.Split(strings.TrimSpace(types), "\n")
	want = []string{
		strings.Join(columns(), ","),
		"g5.xlarge,4,16384,x86_64,,,AMD,amd-sev-snp,3300,3 Gigabit,2/2/4x2,,1,1,NVIDIA " +
			"A10G,24576,,default,700,3000,3500,15000,1,250,ssd-nvme,8,15,usw2=1",
		"m5.large,2,8192,x86_64,,,Intel Xeon,,3100,Up to 10 Gigabit,,1,1,,,,,,650,3600,4750,18750,,,,3,10,euw1=2 " +
			"usw2=13",
		"m9g.large,2,8192,arm64,,,AWS,,2800,Up to 15 Gigabit,1.25/15/3x1,1,,,,,,,,,,,,,,3,10,",
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want a header, the two types that are sold and the new one:\n%s", len(lines), types)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d\n got %s\nwant %s", i, lines[i], want[i])
		}
	}
	again, _, _ := generate(t, data)
	if again != prices {
		t.Error("the same source gives another file")
	}
}

func TestGenerateRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not JSON":       {`{`, "parsing"},
		"a type twice":   {strings.Replace(data, `"g5.xlarge"`, `"m5.large"`, 1), "m5.large appears twice"},
		"a strange zone": {strings.Replace(data, "usw2-az3", "us-west-2c", 1), `zone id "us-west-2c"`},
	} {
		if _, _, err := generate(t, test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
	if err := run(options{}); err == nil {
		t.Error("no output files are no error")
	}
}

func TestVersionDate(t *testing.T) {
	if date, err := versionDate("v0.0.0-20250528091325-32acf84f42eb"); err != nil || date != "2025-05-28" {
		t.Errorf("date %q, %v", date, err)
	}
	if _, err := versionDate("v1.2.3"); err == nil {
		t.Error("a version without a date is no error")
	}
}

func TestWriteFileSaysWhere(t *testing.T) {
	err := writeFile(filepath.Join(t.TempDir(), "no", "such", "folder"), &source{date: "2025-05-28"}, writePrices)
	if err == nil {
		t.Error("no error")
	}
	var buf bytes.Buffer
	if _, err := writeTypes(&buf, &source{}); err == nil {
		t.Error("no types are no error")
	}
	if _, err := writePrices(&buf, &source{}); err == nil {
		t.Error("no prices are no error")
	}
}
