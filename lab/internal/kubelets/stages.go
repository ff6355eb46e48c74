package kubelets

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
)

//go:embed stages.yaml
var stagesYAML string

type stageSet = map[internalversion.StageResourceRef][]*internalversion.Stage

// loadStages parses the behaviour of nodes and pods.
func loadStages() (stageSet, error) {
	stages := stageSet{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(stagesYAML), 4096)
	for {
		var stage v1alpha1.Stage
		err := decoder.Decode(&stage)
		if errors.Is(err, io.EOF) {
			return stages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse stage: %w", err)
		}
		if stage.Kind == "" {
			continue
		}
		converted, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("convert stage %s: %w", stage.Name, err)
		}
		stages[converted.Spec.ResourceRef] = append(stages[converted.Spec.ResourceRef], converted)
	}
}

// templateFuncs are the functions that stages.yaml uses beyond kwok's own.
func templateFuncs(kubeletVersion string) gotpl.FuncMap {
	return gotpl.FuncMap{
		"KubeletVersion": func() string { return kubeletVersion },
		"NodeAddress":    nodeAddress,
	}
}

// nodeAddress derives an address in 10.0.0.0/10 from a node's uid: stable, and
// distinct enough for a cluster that routes nothing.
func nodeAddress(uid string) string {
	var sum uint32 = 2166136261
	for i := range len(uid) {
		sum = (sum ^ uint32(uid[i])) * 16777619
	}
	return net.IPv4(10, byte(sum>>16)&0x3f, byte(sum>>8), byte(sum)).String()
}
