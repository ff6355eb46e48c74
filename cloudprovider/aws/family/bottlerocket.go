package family

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// releaseInName finds the release in the name of a Bottlerocket image, such as
// bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a.
var releaseInName = regexp.MustCompile(`-v([0-9]+)\.([0-9]+)\.[0-9]+(-|$)`)

// tomlData is the user data of Bottlerocket: the class's settings with ours put over them. Of node labels the class's
// stay, unless they are also ours. Of node taints only ours hold: the scheduler would not know of others.
func tomlData(n Node) (string, error) {
	if strings.HasPrefix(strings.TrimSpace(n.UserData), "#!") {
		// to TOML it is a remark, and some scripts read as settings
		return "", errors.New("spec.userData is a script; Bottlerocket runs none, it takes settings in TOML, such as " +
			"[settings.kubernetes]")
	}
	tree := map[string]any{}
	if err := toml.Unmarshal([]byte(n.UserData), &tree); err != nil {
		return "", fmt.Errorf("spec.userData is not TOML: %w", atPosition(err))
	}
	s, err := n.settings()
	if err != nil {
		return "", err
	}
	all, err := table(tree, "settings", "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := table(all, "kubernetes", "settings.kubernetes")
	if err != nil {
		return "", err
	}
	if err := n.putCluster(kubernetes); err != nil {
		return "", err
	}
	s.put(kubernetes)
	if n.RAID0 {
		commands, err := table(all, "bootstrap-commands", "settings.bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands["000-mount-instance-storage"] = mountCommand(n.ImageName)
	}
	out, err := toml.Marshal(tree)
	if err != nil {
		return "", fmt.Errorf("write the settings: %w", err)
	}
	return string(out), nil
}

// putCluster says which cluster to join, and as what.
func (n Node) putCluster(kubernetes map[string]any) error {
	kubernetes["cluster-name"] = n.Cluster.Name
	kubernetes["api-server"] = n.Endpoint
	if n.CABundle != "" {
		kubernetes["cluster-certificate"] = n.CABundle
	}
	labels, err := table(kubernetes, "node-labels", "settings.kubernetes.node-labels")
	if err != nil {
		return err
	}
	for key, value := range n.labels() {
		labels[key] = value
	}
	taints := map[string][]string{}
	for _, t := range n.taints() {
		taints[t.Key] = append(taints[t.Key], t.Value+":"+string(t.Effect))
	}
	kubernetes["node-taints"] = taints
	return nil
}

// put writes the settings of the kubelet under the names that Bottlerocket has for them.
func (s settings) put(kubernetes map[string]any) {
	switch len(s.ClusterDNS) {
	case 0:
	case 1:
		kubernetes["cluster-dns-ip"] = s.ClusterDNS[0]
	default:
		kubernetes["cluster-dns-ip"] = s.ClusterDNS
	}
	if s.CPUCFSQuota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *s.CPUCFSQuota
	}
	for name, value := range map[string]*int64{"max-pods": s.MaxPods,
		"eviction-max-pod-grace-period": s.EvictionMaxPodGracePeriod} {
		if value != nil {
			kubernetes[name] = *value
		}
	}
	for name, value := range map[string]*int64{
		"image-gc-high-threshold-percent": s.ImageGCHighThresholdPercent,
		"image-gc-low-threshold-percent":  s.ImageGCLowThresholdPercent,
	} {
		if value != nil {
			kubernetes[name] = strconv.FormatInt(*value, 10)
		}
	}
	for name, values := range map[string]map[string]string{
		"eviction-hard": s.EvictionHard, "eviction-soft": s.EvictionSoft,
		"eviction-soft-grace-period": s.EvictionSoftGracePeriod,
		"kube-reserved":              s.KubeReserved, "system-reserved": s.SystemReserved,
	} {
		if len(values) > 0 {
			kubernetes[name] = values
		}
	}
}

// mountCommand joins the disks of the instance and puts the files of pods and images there. Since release 1.46 the
// system knows by itself which folders these are; before, and if the release is not known, they are named.
func mountCommand(imageName string) map[string]any {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if !sinceRelease(imageName, 1, 46) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return map[string]any{
		"commands":  [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"mode":      "always",
		"essential": true,
	}
}

func sinceRelease(imageName string, major, minor int) bool {
	found := releaseInName.FindStringSubmatch(imageName)
	if found == nil {
		return false
	}
	a, errA := strconv.Atoi(found[1])
	b, errB := strconv.Atoi(found[2])
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}

// table finds a table in a table and makes it if it is missing.
func table(in map[string]any, key, path string) (map[string]any, error) {
	value, ok := in[key]
	if !ok {
		made := map[string]any{}
		in[key] = made
		return made, nil
	}
	found, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec.userData has a value at %s; it must be a table", path)
	}
	return found, nil
}

// atPosition adds where in the text the error is.
func atPosition(err error) error {
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := decode.Position()
		return fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return err
}
