package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// module is a Terraform module and what is known of its values.
type module struct {
	variables, locals map[string]cty.Value
	// resources are, by type and name, what references to a resource see.
	resources map[string]map[string]cty.Value
	blocks    []*hclsyntax.Block
}

// instance is one resource that is made, with what its expressions gave.
type instance struct {
	kind   string
	fields map[string]any
}

func (i instance) text(name string) string { return fmt.Sprint(i.fields[name]) }

// readModule reads the .tf files of a folder.
func readModule(dir string) (*module, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.tf"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no .tf files in %s: %w", dir, errors.Join(err, os.ErrNotExist))
	}
	m := &module{variables: map[string]cty.Value{}, locals: map[string]cty.Value{},
		resources: map[string]map[string]cty.Value{}}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parsed, diags := hclsyntax.ParseConfig(data, file, hcl.InitialPos)
		if diags.HasErrors() {
			return nil, diags
		}
		body, ok := parsed.Body.(*hclsyntax.Body)
		if !ok {
			return nil, fmt.Errorf("%s is not in HCL's own syntax", file)
		}
		m.blocks = append(m.blocks, body.Blocks...)
	}
	return m, nil
}

// Terraform works a module out with the given variables.
func Terraform(dir string, variables map[string]string) (Setup, error) {
	m, err := readModule(dir)
	if err != nil {
		return Setup{}, err
	}
	if err := m.setVariables(variables); err != nil {
		return Setup{}, err
	}
	for _, b := range m.of("locals") {
		for name, a := range b.Body.Attributes {
			v, diags := a.Expr.Value(m.context(nil))
			if diags.HasErrors() {
				return Setup{}, diags
			}
			m.locals[name] = v
		}
	}
	made, err := m.instances()
	if err != nil {
		return Setup{}, err
	}
	s := newSetup()
	for _, i := range made {
		if err := s.addInstance(i, made); err != nil {
			return Setup{}, fmt.Errorf("%s: %s: %w", dir, i.kind, err)
		}
	}
	for _, b := range m.of("output") {
		v, diags := b.Body.Attributes["value"].Expr.Value(m.context(nil))
		if diags.HasErrors() {
			return Setup{}, diags
		}
		s.Outputs[b.Labels[0]] = v.AsString()
	}
	return s.sorted(), nil
}

func (m *module) of(kind string) []*hclsyntax.Block {
	var out []*hclsyntax.Block
	for _, b := range m.blocks {
		if b.Type == kind {
			out = append(out, b)
		}
	}
	return out
}

func (m *module) setVariables(given map[string]string) error {
	left := len(given)
	for _, b := range m.of("variable") {
		name := b.Labels[0]
		value, ok := given[name]
		if ok {
			left--
			m.variables[name] = cty.StringVal(value)
		} else if d := b.Body.Attributes["default"]; d != nil {
			v, diags := d.Expr.Value(nil)
			if diags.HasErrors() {
				return diags
			}
			m.variables[name] = v
		}
	}
	if left != 0 {
		return fmt.Errorf("some of the variables %v are not declared", given)
	}
	for _, b := range m.of("variable") {
		if err := m.demand(b, "validation"); err != nil {
			return err
		}
	}
	return nil
}

// demand tries the conditions that a block has in inner blocks.
func (m *module) demand(b *hclsyntax.Block, inner string) error {
	for _, v := range b.Body.Blocks {
		if v.Type == "lifecycle" {
			if err := m.demand(v, inner); err != nil {
				return err
			}
		}
		if v.Type != inner {
			continue
		}
		ok, diags := v.Body.Attributes["condition"].Expr.Value(m.context(nil))
		if diags.HasErrors() {
			return diags
		}
		if ok.False() {
			message, diags := v.Body.Attributes["error_message"].Expr.Value(m.context(nil))
			if diags.HasErrors() {
				return diags
			}
			return errors.New(message.AsString())
		}
	}
	return nil
}

// context is what expressions see.
func (m *module) context(each map[string]cty.Value) *hcl.EvalContext {
	object := func(fields ...string) cty.Value {
		out := map[string]cty.Value{}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i]] = cty.StringVal(fields[i+1])
		}
		return cty.ObjectVal(map[string]cty.Value{"current": cty.ObjectVal(out)})
	}
	vars := map[string]cty.Value{
		"var": cty.ObjectVal(m.variables), "local": cty.ObjectVal(m.locals),
		"data": cty.ObjectVal(map[string]cty.Value{
			"aws_partition":       object("partition", partition, "dns_suffix", urlSuffix),
			"aws_region":          object("region", region),
			"aws_caller_identity": object("account_id", account),
		}),
	}
	if each != nil {
		vars["each"] = cty.ObjectVal(each)
	}
	for kind, named := range m.resources {
		vars[kind] = cty.ObjectVal(named)
	}
	return &hcl.EvalContext{Variables: vars, Functions: map[string]function.Function{
		"jsonencode": stdlib.JSONEncodeFunc, "contains": stdlib.ContainsFunc, "regex": stdlib.RegexFunc,
		"substr": stdlib.SubstrFunc,
		"toset":  stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "can": tryfunc.CanFunc,
	}}
}

// instances works all resources out. One that refers to another waits until that one is known.
func (m *module) instances() ([]instance, error) {
	var out []instance
	waiting := m.of("resource")
	for len(waiting) > 0 {
		var later []*hclsyntax.Block
		var errs []error
		for _, b := range waiting {
			if err := m.demand(b, "precondition"); err != nil {
				return nil, err
			}
			made, err := m.make(b)
			if err != nil {
				later, errs = append(later, b), append(errs, err)
				continue
			}
			out = append(out, made...)
		}
		if len(later) == len(waiting) {
			return nil, errors.Join(errs...)
		}
		waiting = later
	}
	return out, nil
}

// make works a resource out, with its count or for_each.
func (m *module) make(b *hclsyntax.Block) ([]instance, error) {
	keys := []map[string]cty.Value{nil}
	if a := b.Body.Attributes["count"]; a != nil {
		v, diags := a.Expr.Value(m.context(nil))
		if diags.HasErrors() {
			return nil, diags
		}
		n, _ := v.AsBigFloat().Int64()
		keys = make([]map[string]cty.Value, n)
	}
	if a := b.Body.Attributes["for_each"]; a != nil {
		v, diags := a.Expr.Value(m.context(nil))
		if diags.HasErrors() {
			return nil, diags
		}
		keys = nil
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			keys = append(keys, map[string]cty.Value{"key": k, "value": e})
		}
	}
	var out []instance
	seen := map[string]cty.Value{}
	for _, each := range keys {
		fields, err := m.fields(b, each)
		if err != nil {
			return nil, err
		}
		i := instance{kind: b.Labels[0], fields: map[string]any{}}
		for name, v := range fields {
			text, err := ctyjson.Marshal(v, v.Type())
			if err != nil {
				return nil, err
			}
			var plain any
			if err := json.Unmarshal(text, &plain); err != nil {
				return nil, err
			}
			i.fields[name] = plain
		}
		out = append(out, i)
		if each == nil {
			m.remember(b, cty.ObjectVal(fields))
		} else {
			seen[each["key"].AsString()] = cty.ObjectVal(fields)
		}
	}
	if len(seen) > 0 {
		m.remember(b, cty.ObjectVal(seen))
	}
	return out, nil
}

func (m *module) remember(b *hclsyntax.Block, v cty.Value) {
	kind := b.Labels[0]
	if m.resources[kind] == nil {
		m.resources[kind] = map[string]cty.Value{}
	}
	m.resources[kind][b.Labels[1]] = v
}

// fields are a resource's arguments, and what AWS would add to them.
func (m *module) fields(b *hclsyntax.Block, each map[string]cty.Value) (map[string]cty.Value, error) {
	out := map[string]cty.Value{}
	for name, a := range b.Body.Attributes {
		if name == "count" || name == "for_each" {
			continue
		}
		v, diags := a.Expr.Value(m.context(each))
		if diags.HasErrors() {
			return nil, diags
		}
		out[name] = v
	}
	called := func() string { return out["name"].AsString() }
	switch b.Labels[0] {
	case "aws_iam_role":
		out["arn"] = cty.StringVal(roleARN(called()))
	case "aws_sqs_queue":
		out["arn"], out["url"] = cty.StringVal(queueARN(called())), cty.StringVal(queueURL(called()))
	case "aws_cloudwatch_event_rule":
		if len(out["name_prefix"].AsString()) > 64-26 {
			return nil, fmt.Errorf("the prefix %s leaves no room for what Terraform appends",
				out["name_prefix"].AsString())
		}
		out["name"] = out["name_prefix"]
	}
	return out, nil
}
