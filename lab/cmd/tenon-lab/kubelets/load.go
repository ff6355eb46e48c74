package kubelets

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tenon-sh/tenon/lab/internal/stages"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
)

type stageSet = map[internalversion.StageResourceRef][]*internalversion.Stage

// loadStages parses the behaviour of nodes and pods.
func loadStages() (stageSet, error) {
	loaded := stageSet{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(stages.YAML()), 4096)
	for {
		var stage v1alpha1.Stage
		err := decoder.Decode(&stage)
		if errors.Is(err, io.EOF) {
			return loaded, nil
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
		loaded[converted.Spec.ResourceRef] = append(loaded[converted.Spec.ResourceRef], converted)
	}
}
