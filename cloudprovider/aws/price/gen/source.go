package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

const sourceModule = "github.com/LeanerCloud/ec2-instances-info"

// source is the data that everything is made from: every region's zones and prices on one day, and what is newer than
// that of some places' prices and of the types themselves.
type source struct {
	instances []instance
	date      string
	newer     map[string]dated
	facts     map[string][]string // a row of factsFile by type
}

// instance is what we read of an entry of instances.json.
type instance struct {
	Name           string                  `json:"instance_type"`
	VCPU           int                     `json:"vCPU"`
	MemoryGiB      float64                 `json:"memory"`
	Arch           []string                `json:"arch"`
	Generation     string                  `json:"generation"`
	Virtualization []string                `json:"linux_virtualization_types"`
	Processor      string                  `json:"physical_processor"`
	Clock          string                  `json:"clock_speed_ghz"`
	Network        string                  `json:"network_performance"`
	IPv6           bool                    `json:"ipv6_support"`
	PlacementGroup bool                    `json:"placement_group_support"`
	GPU            float64                 `json:"GPU"`
	GPUModel       string                  `json:"GPU_model"`
	GPUMemoryGiB   float64                 `json:"GPU_memory"`
	FPGA           int                     `json:"FPGA"`
	EBSBaseline    int                     `json:"ebs_baseline_bandwidth"`
	EBSBaseIOPS    int                     `json:"ebs_baseline_iops"`
	EBSMaximum     int                     `json:"ebs_max_bandwidth"`
	EBSMaxIOPS     int                     `json:"ebs_iops"`
	Storage        *storage                `json:"storage"`
	VPC            *network                `json:"vpc"`
	Zones          map[string][]string     `json:"availability_zones"`
	Pricing        map[string]regionPrices `json:"pricing"`
}

type storage struct {
	Devices int     `json:"devices"`
	SizeGB  float64 `json:"size"`
	SSD     bool    `json:"ssd"`
	NVMe    bool    `json:"nvme_ssd"`
}

type network struct {
	IPsPerENI int `json:"ips_per_eni"`
	MaxENIs   int `json:"max_enis"`
}

type regionPrices struct {
	Linux *struct {
		OnDemand string   `json:"ondemand"`
		Spot     []string `json:"spot"`
	} `json:"linux"`
}

// load reads the data file; by default the one in the pinned module.
func load(path, date string) (*source, error) {
	if path == "" {
		dir, version, err := moduleDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, "data", "instances.json")
		if date, err = versionDate(version); err != nil {
			return nil, err
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the source data: %w", err)
	}
	s := &source{date: date}
	if err := json.Unmarshal(raw, &s.instances); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", path, err)
	}
	return s, nil
}

// moduleDir downloads the pinned module, if it is not there yet, and says where it is and which version.
func moduleDir() (dir, version string, err error) {
	cmd := exec.Command("go", "mod", "download", "-json", sourceModule)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	var answer struct{ Dir, Version, Error string }
	if jsonErr := json.Unmarshal(text, &answer); jsonErr == nil && answer.Error != "" {
		return "", "", fmt.Errorf("downloading %s: %s", sourceModule, answer.Error)
	}
	if err != nil {
		return "", "", fmt.Errorf("downloading %s (run this in the gen folder): %w", sourceModule, err)
	}
	return answer.Dir, answer.Version, nil
}

// stamp is the time in a pseudo-version such as v0.0.0-20250528091325-32acf84f42eb.
var stamp = regexp.MustCompile(`[.-](\d{4})(\d{2})(\d{2})\d{6}-[0-9a-f]{12}$`)

// versionDate is the day of the pinned commit, which is when the data was taken: that module commits every update.
func versionDate(version string) (string, error) {
	m := stamp.FindStringSubmatch(version)
	if m == nil {
		return "", fmt.Errorf("the version %q of %s carries no date; pin a commit", version, sourceModule)
	}
	return m[1] + "-" + m[2] + "-" + m[3], nil
}
