package machine

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Names of what an expression may ask about an instance type.
const (
	varCores     = "vcpus"
	varMemory    = "memory_mib"
	varENIs      = "default_enis"
	varAddresses = "ips_per_eni"
	varPods      = "max_pods"
	varName      = "instance_type"
)

// dearest bounds what one evaluation may cost: the expressions are arithmetic, and anything longer is a mistake.
const dearest = 10_000

// inputs are the values that an expression sees.
type inputs struct {
	cores, memory, enis, addresses, pods int64
	name                                 string
}

func (i inputs) values() map[string]any {
	return map[string]any{
		varCores: i.cores, varMemory: i.memory, varENIs: i.enis, varAddresses: i.addresses, varPods: i.pods,
		varName: i.name,
	}
}

// expressions reads and computes expressions; each text is read once. It is safe for concurrent use.
type expressions struct {
	mu   sync.Mutex
	env  *cel.Env
	read map[string]program
}

// program is an expression that was read, or why it could not be.
type program struct {
	run cel.Program
	err error
}

// mostExpressions is how many are kept; there are as many as people write.
const mostExpressions = 1000

// number computes an expression. What it gives beyond a whole number is dropped.
func (e *expressions) number(text string, in inputs) (int64, error) {
	p := e.program(text)
	if p.err != nil {
		return 0, p.err
	}
	out, _, err := p.run.Eval(in.values())
	if err != nil {
		return 0, err
	}
	switch v := out.(type) {
	case types.Int:
		return int64(v), nil
	case types.Double:
		// Also false for what is no number, such as 0.0 / 0.0.
		if f := float64(v); math.Abs(f) <= math.MaxInt32 {
			return int64(f), nil
		}
		return 0, fmt.Errorf("it gives %v", out.Value())
	default:
		return 0, errors.New("it does not give a number")
	}
}

func (e *expressions) program(text string) program {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p, ok := e.read[text]; ok {
		return p
	}
	if e.read == nil || len(e.read) >= mostExpressions {
		e.read = map[string]program{}
	}
	var p program
	p.run, p.err = e.compile(text)
	e.read[text] = p
	return p
}

// compile reads an expression. The lock is held.
func (e *expressions) compile(text string) (cel.Program, error) {
	if e.env == nil {
		env, err := newEnv()
		if err != nil {
			return nil, fmt.Errorf("preparing to read expressions: %w", err)
		}
		e.env = env
	}
	tree, issues := e.env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("character %d: %s", first.Location.Column()+1, first.Message)
	}
	if kind := tree.OutputType(); !kind.IsExactType(cel.IntType) && !kind.IsExactType(cel.DoubleType) {
		return nil, fmt.Errorf("it gives a %s and must give a number", kind)
	}
	return e.env.Program(tree, cel.CostLimit(dearest))
}

func newEnv() (*cel.Env, error) {
	options := []cel.EnvOption{cel.Variable(varName, cel.StringType)}
	for _, name := range []string{varCores, varMemory, varENIs, varAddresses, varPods} {
		options = append(options, cel.Variable(name, cel.IntType))
	}
	options = append(options,
		extreme("min", func(a, b float64) bool { return a <= b }),
		extreme("max", func(a, b float64) bool { return a >= b }))
	return cel.NewEnv(options...)
}

// extreme is a function of two numbers that gives the first if it wins, else the second. Of two whole numbers it gives
// a whole one.
func extreme(name string, wins func(a, b float64) bool) cel.EnvOption {
	choose := func(a, b ref.Val) ref.Val {
		x, okX := asFloat(a)
		y, okY := asFloat(b)
		if !okX || !okY {
			return types.NewErr("%s takes two numbers", name)
		}
		if wins(x, y) {
			return a
		}
		return b
	}
	asDouble := func(a, b ref.Val) ref.Val {
		out := choose(a, b)
		if whole, ok := out.(types.Int); ok {
			return types.Double(whole)
		}
		return out
	}
	var overloads []cel.FunctionOpt
	for _, left := range []*cel.Type{cel.IntType, cel.DoubleType} {
		for _, right := range []*cel.Type{cel.IntType, cel.DoubleType} {
			gives, how := cel.DoubleType, asDouble
			if left == cel.IntType && right == cel.IntType {
				gives, how = cel.IntType, choose
			}
			id := fmt.Sprintf("%s_%s_%s", name, left, right)
			overloads = append(overloads, cel.Overload(id, []*cel.Type{left, right}, gives, cel.BinaryBinding(how)))
		}
	}
	return cel.Function(name, overloads...)
}

func asFloat(v ref.Val) (float64, bool) {
	switch n := v.(type) {
	case types.Int:
		return float64(n), true
	case types.Double:
		return float64(n), true
	}
	return 0, false
}

// amount writes what an expression gave as a quantity of the resource. Each resource has a unit of its own, and cores
// and memory are rounded up to steps, so that types that hardly differ need no launch templates of their own.
func amount(name corev1.ResourceName, n int64) (resource.Quantity, error) {
	if n < 0 || n > math.MaxInt32 {
		return resource.Quantity{}, fmt.Errorf("it gives %d, which is no amount of %s", n, name)
	}
	up := func(step int64) int64 { return (n + step - 1) / step * step }
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(up(10), resource.DecimalSI), nil
	case corev1.ResourceMemory:
		return *resource.NewQuantity(up(16)*mib, resource.BinarySI), nil
	case corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(n*gib, resource.BinarySI), nil
	default:
		return *resource.NewQuantity(n, resource.DecimalSI), nil
	}
}

// CheckExpression says what is wrong with the text of an expression; nil if it can be read.
func CheckExpression(text string) error {
	return (&expressions{}).program(text).err
}
