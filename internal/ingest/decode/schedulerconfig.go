package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

const (
	schedulerKind  = "KubeSchedulerConfiguration"
	schedulerGroup = "kubescheduler.config.k8s.io"
	spreadPlugin   = "PodTopologySpread"
)

// shortConfig is the contract's own form of what is to be known of kube-scheduler.
type shortConfig struct {
	PodTopologySpread struct {
		DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
	} `json:"podTopologySpread"`
}

// fullConfig is kube-scheduler's own form. What does not matter here is known by its name only.
type fullConfig struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Profiles   []fullProfile `json:"profiles"`

	Parallelism               any `json:"parallelism"`
	LeaderElection            any `json:"leaderElection"`
	ClientConnection          any `json:"clientConnection"`
	EnableProfiling           any `json:"enableProfiling"`
	EnableContentionProfiling any `json:"enableContentionProfiling"`
	HealthzBindAddress        any `json:"healthzBindAddress"`
	MetricsBindAddress        any `json:"metricsBindAddress"`
	PercentageOfNodesToScore  any `json:"percentageOfNodesToScore"`
	PodInitialBackoffSeconds  any `json:"podInitialBackoffSeconds"`
	PodMaxBackoffSeconds      any `json:"podMaxBackoffSeconds"`
	Extenders                 any `json:"extenders"`
	DelayCacheUntilActive     any `json:"delayCacheUntilActive"`
}

type fullProfile struct {
	SchedulerName            any          `json:"schedulerName"`
	PercentageOfNodesToScore any          `json:"percentageOfNodesToScore"`
	Plugins                  any          `json:"plugins"`
	PluginConfig             []pluginArgs `json:"pluginConfig"`
}

type pluginArgs struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type spreadArgs struct {
	APIVersion         string                            `json:"apiVersion"`
	Kind               string                            `json:"kind"`
	DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
	DefaultingType     string                            `json:"defaultingType"`
}

// ReadSchedulerConfig reads which topology spread constraints pods get that have none, from YAML: either
// podTopologySpread.defaultConstraints, or a KubeSchedulerConfiguration, of which the first profile counts.
func ReadSchedulerConfig(text string) ([]corev1.TopologySpreadConstraint, error) {
	var form struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
		Profiles   any `json:"profiles"`
	}
	if err := yaml.Unmarshal([]byte(text), &form); err != nil {
		return nil, oneLine(err)
	}
	if form.APIVersion != nil || form.Kind != nil || form.Profiles != nil {
		return readFullConfig(text)
	}
	var short shortConfig
	if err := yaml.UnmarshalStrict([]byte(text), &short); err != nil {
		return nil, oneLine(err)
	}
	return checkConstraints("podTopologySpread.defaultConstraints", short.PodTopologySpread.DefaultConstraints)
}

func readFullConfig(text string) ([]corev1.TopologySpreadConstraint, error) {
	var full fullConfig
	if err := yaml.UnmarshalStrict([]byte(text), &full); err != nil {
		return nil, oneLine(err)
	}
	if full.Kind != schedulerKind {
		return nil, fmt.Errorf("kind: %q is not %s", full.Kind, schedulerKind)
	}
	if group, _, _ := strings.Cut(full.APIVersion, "/"); group != schedulerGroup {
		return nil, fmt.Errorf("apiVersion: %q is not of %s; use for instance %s/v1", full.APIVersion, schedulerGroup,
			schedulerGroup)
	}
	if len(full.Profiles) == 0 {
		return nil, nil
	}
	for i, plugin := range full.Profiles[0].PluginConfig {
		if plugin.Name != spreadPlugin || len(plugin.Args) == 0 {
			continue
		}
		path := fmt.Sprintf("profiles[0].pluginConfig[%d].args", i)
		var args spreadArgs
		if err := yaml.UnmarshalStrict(plugin.Args, &args); err != nil {
			return nil, fmt.Errorf("%s: %w", path, oneLine(err))
		}
		switch {
		case args.DefaultingType != "" && args.DefaultingType != "List" && args.DefaultingType != "System":
			return nil, fmt.Errorf("%s.defaultingType: %q is not one of List, System", path, args.DefaultingType)
		case args.DefaultingType != "List" && len(args.DefaultConstraints) > 0:
			// System is what kube-scheduler takes if nothing is said, and it refuses a list then, too.
			return nil, fmt.Errorf("%s.defaultingType: must be List for defaultConstraints to count", path)
		}
		return checkConstraints(path+".defaultConstraints", args.DefaultConstraints)
	}
	return nil, nil
}

// checkConstraints judges default constraints the way kube-scheduler does at its start, and leaves out what it does not
// look at: the selector that is deduced takes the place of matchLabelKeys, and only a filter knows minDomains.
func checkConstraints(path string, list []corev1.TopologySpreadConstraint) ([]corev1.TopologySpreadConstraint, error) {
	type pair struct {
		key  string
		when corev1.UnsatisfiableConstraintAction
	}
	seen := make(map[pair]bool)
	out := make([]corev1.TopologySpreadConstraint, 0, len(list))
	for i, c := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if err := checkConstraint(at, &c); err != nil {
			return nil, err
		}
		p := pair{c.TopologyKey, c.WhenUnsatisfiable}
		if seen[p] {
			return nil, fmt.Errorf("%s: there is a constraint with topologyKey %s and whenUnsatisfiable %s already; "+
				"remove one", at, p.key, p.when)
		}
		seen[p] = true
		c.MatchLabelKeys = nil
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			c.MinDomains = nil
		}
		out = append(out, c)
	}
	return out, nil
}

func checkConstraint(at string, c *corev1.TopologySpreadConstraint) error {
	if c.MaxSkew < 1 {
		return fmt.Errorf("%s.maxSkew: %d is too little; use 1 or more", at, c.MaxSkew)
	}
	if c.TopologyKey == "" {
		return fmt.Errorf("%s.topologyKey: is empty; name a label of nodes, for instance %s", at,
			corev1.LabelTopologyZone)
	}
	if problems := validation.IsQualifiedName(c.TopologyKey); len(problems) > 0 {
		return fmt.Errorf("%s.topologyKey: %q is not a label: %s", at, c.TopologyKey, strings.Join(problems, "; "))
	}
	if c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway {
		return fmt.Errorf("%s.whenUnsatisfiable: %q is not one of DoNotSchedule, ScheduleAnyway", at,
			c.WhenUnsatisfiable)
	}
	if c.LabelSelector != nil {
		return fmt.Errorf("%s.labelSelector: must not be set, it follows from each pod's Services and owner; remove it",
			at)
	}
	if c.MinDomains != nil && *c.MinDomains < 1 {
		return fmt.Errorf("%s.minDomains: %d is too little; use 1 or more, or leave it out", at, *c.MinDomains)
	}
	for _, policy := range []struct {
		field string
		value *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
		if v := policy.value; v != nil && *v != corev1.NodeInclusionPolicyHonor &&
			*v != corev1.NodeInclusionPolicyIgnore {
			return fmt.Errorf("%s.%s: %q is not one of Honor, Ignore", at, policy.field, *v)
		}
	}
	return nil
}

// oneLine writes a decoder's error in one line, without the names of the decoders that it went through.
func oneLine(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, noise := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ",
		"while decoding JSON: ", "json: "} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return errors.New(text)
}
