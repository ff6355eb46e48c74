package family

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// nodeConfigData is the user data of AL2023: a MIME archive of the class's parts and, at the end, our NodeConfig. The
// image merges all NodeConfig objects of the archive in their order, so what ours says holds.
func nodeConfigData(n Node) (string, error) {
	parts, err := nodeConfigParts(n.UserData)
	if err != nil {
		return "", err
	}
	theirs, at, err := taintFlags(parts)
	switch {
	case err != nil && isArchive(n.UserData):
		return "", fmt.Errorf("spec.userData: part %d of type %s is no NodeConfig: %w", at+1, typeNodeConfig, err)
	case err != nil:
		return "", fmt.Errorf("spec.userData is no NodeConfig: %w", err)
	}
	ours, err := nodeConfig(n, theirs)
	if err != nil {
		return "", err
	}
	return writeArchive(append(parts, newPart(typeNodeConfig, ours))), nil
}

// nodeConfigParts is scriptParts, for images that take a bare NodeConfig as well.
func nodeConfigParts(userData string) ([]part, error) {
	userData = unixLines(userData)
	begin := strings.TrimSpace(userData)
	if begin == "" || isArchive(userData) || strings.HasPrefix(begin, "#!") || scriptType(userData) != typeShell {
		return scriptParts(userData)
	}
	var object map[string]any
	err := yaml.Unmarshal([]byte(userData), &object)
	if err != nil && isNodeConfig(userData) {
		return nil, fmt.Errorf("spec.userData begins like a NodeConfig but is not YAML: %s", oneLine(err))
	}
	if err != nil || object["kind"] == nil {
		return scriptParts(userData)
	}
	if kind := object["kind"]; kind != "NodeConfig" {
		return nil, fmt.Errorf("spec.userData is an object of kind %v; AL2023 takes a NodeConfig, a script or a MIME "+
			"archive of these", kind)
	}
	return []part{newPart(typeNodeConfig, userData)}, nil
}

// isNodeConfig tells whether the first lines are those of a NodeConfig, however broken the rest is.
func isNodeConfig(text string) bool {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.Trim(value, " \"'")
		switch {
		case key == "kind" && value == "NodeConfig", key == "apiVersion" && strings.HasPrefix(value, "node.eks.aws/"):
			return true
		case key != "" && key != "---" && key != "kind" && key != "apiVersion" && !strings.HasPrefix(key, "#"):
			return false
		}
	}
	return false
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// nodeConfig writes our part: the cluster, the disks and the kubelet.
func nodeConfig(n Node, theirTaints []string) (string, error) {
	config, err := n.config()
	if err != nil {
		return "", err
	}
	s, err := n.settings()
	if err != nil {
		return "", err
	}
	if len(s.ClusterDNS) > 0 {
		config["clusterDNS"] = s.ClusterDNS
	}
	config["registerWithTaints"] = n.taints()

	cluster := map[string]any{"name": n.Cluster.Name, "apiServerEndpoint": n.Endpoint, "cidr": n.ServiceCIDR}
	if n.CABundle != "" {
		cluster["certificateAuthority"] = n.CABundle
	}
	kubelet := map[string]any{"config": config}
	if flags := kubeletFlags(n, theirTaints); len(flags) > 0 {
		kubelet["flags"] = flags
	}
	spec := map[string]any{"cluster": cluster, "kubelet": kubelet}
	if n.RAID0 {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": "RAID0"}}
	}
	out, err := yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
	if err != nil {
		return "", fmt.Errorf("write the NodeConfig: %w", err)
	}
	return string(out), nil
}

// kubeletFlags are what the kubelet's configuration file has no place for. The values are not quoted: the image puts
// all flags into one quoted line, which a quote in a flag would end.
func kubeletFlags(n Node, theirTaints []string) []string {
	var flags []string
	if labels := n.labelList(); labels != "" {
		flags = append(flags, "--node-labels="+labels)
	}
	if len(theirTaints) > 0 {
		flags = append(flags, "--register-with-taints="+
			strings.Join(append(theirTaints, taintsBeside(n.taints(), theirTaints)...), ","))
	}
	return flags
}

// taintsBeside writes the taints that are not in the list already.
func taintsBeside(taints []corev1.Taint, list []string) []string {
	var out []string
	for i := range taints {
		if written := taints[i].ToString(); !slices.Contains(list, written) {
			out = append(out, written)
		}
	}
	return out
}

// taintFlags are the taints that the class's NodeConfigs hand to the kubelet as a flag. A flag takes the place of what
// the configuration file says, and the last such flag that of all others, so if there is one, ours must repeat it.
// Otherwise the node would come up without karpenter.sh/unregistered and never be accepted. An error is about the part
// at the place that is returned.
func taintFlags(parts []part) (out []string, at int, err error) {
	for i, p := range parts {
		if p.mediaType() != typeNodeConfig {
			continue
		}
		flags, err := flagsIn(p)
		if err != nil {
			return nil, i, err
		}
		if list, ok := lastTaintFlag(flags); ok {
			out = strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '"' || r == '\'' })
		}
	}
	return out, 0, nil
}

// lastTaintFlag is the value of the last flag for taints. The value may be an item of its own.
func lastTaintFlag(flags []string) (value string, ok bool) {
	const name = "--register-with-taints"
	for i, flag := range flags {
		word, rest, separate := strings.Cut(flag, " ")
		switch list, joined := strings.CutPrefix(flag, name+"="); {
		case joined:
			value, ok = list, true
		case separate && word == name:
			value, ok = strings.TrimSpace(rest), true
		case flag == name && i+1 < len(flags):
			value, ok = flags[i+1], true
		}
	}
	return value, ok
}

// otherKind tells whether an object says of itself that it is no NodeConfig, which the image refuses.
func otherKind(object any) error {
	fields, _ := object.(map[string]any)
	if kind := fields["kind"]; kind != nil && kind != "NodeConfig" {
		return fmt.Errorf("it is of kind %v", kind)
	}
	if version, ok := fields["apiVersion"]; ok && version != nil && !strings.HasPrefix(fmt.Sprint(version),
		"node.eks.aws/") {
		return fmt.Errorf("its apiVersion is %v; write node.eks.aws/v1alpha1", version)
	}
	return nil
}

// flagsIn reads spec.kubelet.flags of a NodeConfig.
func flagsIn(p part) ([]string, error) {
	body, err := p.plain()
	if err != nil {
		return nil, err
	}
	var object any
	if err := yaml.Unmarshal([]byte(body), &object); err != nil {
		return nil, fmt.Errorf("it is not YAML: %s", oneLine(err))
	}
	if err := otherKind(object); err != nil {
		return nil, err
	}
	path := "it"
	for _, key := range []string{"spec", "kubelet", "flags"} {
		fields, ok := object.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s must be an object", path)
		}
		if object, ok = fields[key]; !ok || object == nil {
			return nil, nil
		}
		path = strings.TrimPrefix(path+"."+key, "it.")
	}
	list, ok := object.([]any)
	if !ok {
		return nil, errors.New("spec.kubelet.flags must be a list of texts")
	}
	var flags []string
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, errors.New("spec.kubelet.flags must be a list of texts")
		}
		flags = append(flags, text)
	}
	return flags, nil
}
