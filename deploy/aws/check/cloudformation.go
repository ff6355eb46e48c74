package check

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// template is a CloudFormation template and the values that it is worked out with.
type template struct {
	Parameters map[string]struct {
		Default string `yaml:"Default"`
	} `yaml:"Parameters"`
	Rules map[string]struct {
		RuleCondition yaml.Node `yaml:"RuleCondition"`
		Assertions    []struct {
			Assert            yaml.Node `yaml:"Assert"`
			AssertDescription string    `yaml:"AssertDescription"`
		} `yaml:"Assertions"`
	} `yaml:"Rules"`
	Conditions map[string]yaml.Node `yaml:"Conditions"`
	Resources  map[string]resource  `yaml:"Resources"`
	Outputs    map[string]struct {
		Value yaml.Node `yaml:"Value"`
	} `yaml:"Outputs"`

	values map[string]string
}

type resource struct {
	Type       string               `yaml:"Type"`
	Condition  string               `yaml:"Condition"`
	Properties map[string]yaml.Node `yaml:"Properties"`
}

func readTemplate(file string) (*template, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := &template{}
	if err := yaml.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return t, nil
}

// CloudFormation works a template out with the given parameters.
func CloudFormation(file string, parameters map[string]string) (Setup, error) {
	t, err := readTemplate(file)
	if err != nil {
		return Setup{}, err
	}
	t.values = map[string]string{"AWS::Partition": partition, "AWS::Region": region, "AWS::AccountId": account,
		"AWS::URLSuffix": urlSuffix}
	for name, p := range t.Parameters {
		t.values[name] = p.Default
	}
	for name, value := range parameters {
		if _, ok := t.Parameters[name]; !ok {
			return Setup{}, fmt.Errorf("%s has no parameter %s", file, name)
		}
		t.values[name] = value
	}
	if err := t.assert(); err != nil {
		return Setup{}, err
	}
	s := newSetup()
	for id, r := range t.Resources {
		if made, err := t.holds(r.Condition); err != nil || !made {
			if err != nil {
				return Setup{}, err
			}
			continue
		}
		if err := t.add(&s, r); err != nil {
			return Setup{}, fmt.Errorf("%s: resource %s: %w", file, id, err)
		}
	}
	for name, o := range t.Outputs {
		v, err := t.text(&o.Value)
		if err != nil {
			return Setup{}, fmt.Errorf("%s: output %s: %w", file, name, err)
		}
		s.Outputs[name] = v
	}
	return s.sorted(), nil
}

// assert tries the rules about parameters.
func (t *template) assert() error {
	for name, r := range t.Rules {
		applies, err := t.truth(&r.RuleCondition)
		if err != nil {
			return err
		}
		for _, a := range r.Assertions {
			ok, err := t.truth(&a.Assert)
			if err != nil {
				return err
			}
			if applies && !ok {
				return fmt.Errorf("rule %s: %s", name, a.AssertDescription)
			}
		}
	}
	return nil
}

func (t *template) holds(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	node, ok := t.Conditions[condition]
	if !ok {
		return false, fmt.Errorf("there is no condition %s", condition)
	}
	return t.truth(&node)
}

func (t *template) truth(n *yaml.Node) (bool, error) {
	v, err := t.value(n)
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("line %d is no condition but %v", n.Line, v)
	}
	return yes, nil
}

func (t *template) text(n *yaml.Node) (string, error) {
	v, err := t.value(n)
	if err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("line %d is no text but %v", n.Line, v)
	}
	return text, nil
}

// value works a node out, with its intrinsic functions.
func (t *template) value(n *yaml.Node) (any, error) {
	switch n.Tag {
	case "!Ref":
		return t.ref(n.Value)
	case "!GetAtt":
		return t.attribute(n.Value)
	case "!Sub":
		return t.sub(n.Value)
	case "!If", "!Equals", "!Not":
		return t.call(n)
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		return nil, fmt.Errorf("line %d has %s, which this reader does not know", n.Line, n.Tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			v, err := t.value(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			out[n.Content[i].Value] = v
		}
		return out, nil
	case yaml.SequenceNode:
		return t.list(n.Content)
	default:
		return n.Value, nil
	}
}

func (t *template) list(nodes []*yaml.Node) ([]any, error) {
	out := make([]any, 0, len(nodes))
	for _, n := range nodes {
		v, err := t.value(n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// call works out the functions that take a list.
func (t *template) call(n *yaml.Node) (any, error) {
	want := map[string]int{"!If": 3, "!Equals": 2, "!Not": 1}[n.Tag]
	if len(n.Content) != want {
		return nil, fmt.Errorf("line %d: %s has %d arguments, want %d", n.Line, n.Tag, len(n.Content), want)
	}
	switch n.Tag {
	case "!If":
		yes, err := t.holds(n.Content[0].Value)
		if err != nil {
			return nil, err
		}
		if yes {
			return t.value(n.Content[1])
		}
		return t.value(n.Content[2])
	case "!Not":
		yes, err := t.truth(n.Content[0])
		return !yes, err
	default:
		args, err := t.list(n.Content)
		if err != nil {
			return nil, err
		}
		return args[0] == args[1], nil
	}
}

func (t *template) sub(text string) (string, error) {
	var errs []error
	out := regexp.MustCompile(`\$\{([^}]+)\}`).ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		v, err := t.ref(name)
		if strings.Contains(name, ".") {
			v, err = t.attribute(name)
		}
		errs = append(errs, err)
		return v
	})
	return out, errors.Join(errs...)
}

// ref is what !Ref gives: a parameter's value, or how a resource is called.
func (t *template) ref(name string) (string, error) {
	if v, ok := t.values[name]; ok {
		return v, nil
	}
	r, ok := t.Resources[name]
	if !ok {
		return "", fmt.Errorf("there is no parameter and no resource %s", name)
	}
	called, err := t.name(r)
	if r.Type == "AWS::SQS::Queue" {
		called = queueURL(called)
	}
	return called, err
}

// name is the name that a resource is given.
func (t *template) name(r resource) (string, error) {
	field := map[string]string{"AWS::IAM::Role": "RoleName", "AWS::IAM::InstanceProfile": "InstanceProfileName",
		"AWS::SQS::Queue": "QueueName"}[r.Type]
	node, ok := r.Properties[field]
	if !ok {
		return "", fmt.Errorf("a resource of type %s without a known name is referred to", r.Type)
	}
	return t.text(&node)
}

func (t *template) attribute(name string) (string, error) {
	id, field, _ := strings.Cut(name, ".")
	r, ok := t.Resources[id]
	if !ok {
		return "", fmt.Errorf("there is no resource %s", id)
	}
	called, err := t.name(r)
	switch r.Type + "." + field {
	case "AWS::IAM::Role.Arn":
		return roleARN(called), err
	case "AWS::SQS::Queue.Arn":
		return queueARN(called), err
	case "AWS::SQS::Queue.QueueName":
		return called, err
	}
	return "", fmt.Errorf("this reader does not know %s of %s", field, r.Type)
}
