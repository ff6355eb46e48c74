package family

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// CheckUserData says what is wrong with the user data of a class, whichever node it is for: nil if a node can be told
// what it says. It is the same reading that a launch does, so what passes here is never refused there.
func CheckUserData(class *awsv1.EC2NodeClass) error {
	n := Node{Cluster: Cluster{Name: "any", Endpoint: "https://any", ServiceCIDR: "10.100.0.0/16"},
		UserData: text(class.Spec.UserData)}
	if p := class.Spec.InstanceStorePolicy; p != nil {
		n.RAID0 = *p == awsv1.InstanceStorePolicyRAID0
	}
	_, err := Of(class).render(n)
	return err
}

// DoubtUserData lists what of a class's user data may well not do what is meant, though nobody can know: images may
// know more than we do.
func DoubtUserData(class *awsv1.EC2NodeClass) []string {
	userData := text(class.Spec.UserData)
	switch class.AMIFamily() {
	case awsv1.AMIFamilyCustom:
		if strings.TrimSpace(userData) == "" {
			return []string{"spec.userData is empty, and nothing is added to it for amiFamily Custom; unless the " +
				"image joins the cluster by itself, add what does"}
		}
	case awsv1.AMIFamilyAL2:
		return doubtForAL2(userData)
	case awsv1.AMIFamilyAL2023:
		parts, err := nodeConfigParts(userData)
		if err != nil {
			return nil
		}
		return doubtConfigs(parts)
	case awsv1.AMIFamilyBottlerocket:
		tree := map[string]any{}
		if err := toml.Unmarshal([]byte(userData), &tree); err != nil {
			return nil
		}
		delete(tree, "settings")
		if names := slices.Sorted(maps.Keys(tree)); len(names) > 0 {
			return []string{fmt.Sprintf("spec.userData has %s outside of settings, where Bottlerocket does not look; "+
				"put it under [settings], or remove it", strings.Join(names, ", "))}
		}
	}
	return nil
}

// doubtForAL2 lists the parts of an archive that AL2 passes over. They do no harm: an archive may be shared with
// AL2023.
func doubtForAL2(userData string) []string {
	parts, err := scriptParts(userData)
	if err != nil {
		return nil
	}
	var out []string
	for i, p := range parts {
		if p.mediaType() == typeNodeConfig {
			out = append(out, fmt.Sprintf("spec.userData: part %d is a NodeConfig, which images of AL2 pass over; "+
				"what it says must be in spec.kubelet or a script to hold", i+1))
		}
	}
	return out
}

// doubtConfigs lists fields of NodeConfigs that are not known, and configs that don't say what they are.
func doubtConfigs(parts []part) []string {
	var out []string
	for i, p := range parts {
		if p.mediaType() != typeNodeConfig {
			continue
		}
		body, err := p.plain()
		if err != nil {
			continue
		}
		var object map[string]any
		if yaml.Unmarshal([]byte(body), &object) != nil {
			continue
		}
		for _, name := range []string{"apiVersion", "kind"} {
			if object[name] == nil {
				out = append(out, fmt.Sprintf("spec.userData: the NodeConfig in part %d has no %s; add apiVersion: "+
					"node.eks.aws/v1alpha1 and kind: NodeConfig", i+1, name))
			}
		}
		for _, name := range nodeConfigFields().unknown("", object) {
			out = append(out, fmt.Sprintf("spec.userData: %s is no field of a NodeConfig that is known, and images "+
				"pass over fields that they don't know; correct its name", name))
		}
	}
	return out
}

// schema are the fields that an object may have; nil stands for anything.
type schema map[string]schema

// unknown lists the fields of an object, with their paths, that are not among these.
func (f schema) unknown(path string, object map[string]any) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		inner, known := f[name]
		if !known {
			out = append(out, path+name)
			continue
		}
		if below, ok := object[name].(map[string]any); ok && inner != nil {
			out = append(out, inner.unknown(path+name+".", below)...)
		}
	}
	return out
}

// nodeConfigFields are the fields of node.eks.aws/v1alpha1. Below those that hold other formats nothing is looked at.
func nodeConfigFields() schema {
	return schema{
		"apiVersion": nil, "kind": nil, "metadata": nil,
		"spec": {
			"cluster": {
				"name": nil, "apiServerEndpoint": nil, "certificateAuthority": nil, "cidr": nil,
				"enableOutpost": nil, "id": nil,
			},
			"containerd": {"config": nil, "baseRuntimeSpec": nil},
			"instance": {"localStorage": {"strategy": nil, "mountPath": nil, "disabledMounts": nil},
				"environment": nil, "network": nil},
			"kubelet":      {"config": nil, "flags": nil, "maxPodsExpression": nil},
			"featureGates": nil,
		},
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
