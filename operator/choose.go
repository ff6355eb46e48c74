package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/cluster"
)

// choice is the cloud that runs, out of those that could.
type choice struct {
	clouds []Cloud
	// own are the flags of each cloud, by its name.
	own map[string]*pflag.FlagSet
	// clash is what is wrong with these flags; nil if nothing is.
	clash error
	// name is the value of --cloud-provider; choose fills it in.
	name string
	// byHand says that the name was given, and does not follow from a cloud's own settings.
	byHand bool
}

// register adds the flag that chooses, and those of the clouds. What can't be added is left out, and check says why.
func (c *choice) register(f *pflag.FlagSet) {
	c.own = map[string]*pflag.FlagSet{}
	for i := range c.clouds {
		own, err := c.clouds[i].flags()
		c.own[c.clouds[i].Name], c.clash = own, cmp.Or(c.clash, err)
	}
	f.StringVar(&c.name, "cloud-provider", "", c.usage())
	for i := range c.clouds {
		name := c.clouds[i].Name
		c.own[name].VisitAll(func(flag *pflag.Flag) {
			switch {
			case flag.Name == "help" || f.Lookup(flag.Name) != nil:
				c.clash = cmp.Or(c.clash, fmt.Errorf("cloud %q registers --%s, which the controller or another cloud "+
					"has; give it another name", name, flag.Name))
			case flag.Shorthand == "h" || flag.Shorthand != "" && f.ShorthandLookup(flag.Shorthand) != nil:
				c.clash = cmp.Or(c.clash, fmt.Errorf("cloud %q registers --%s with the shorthand -%s, which the "+
					"controller or another cloud has; leave it out", name, flag.Name, flag.Shorthand))
			default:
				f.AddFlag(flag)
			}
		})
	}
}

// flags are those of a cloud. pflag panics where two of them have one name.
func (c *Cloud) flags() (own *pflag.FlagSet, err error) {
	own = pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	own.SetOutput(io.Discard) // pflag prints what it panics with
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cloud %q can't register its flags: %v", c.Name, r)
		}
	}()
	if c.Settings.Register != nil {
		c.Settings.Register(own)
	}
	switch gates := c.Settings.Gates; {
	case gates == nil:
	case gates.flag == "":
		return own, fmt.Errorf("cloud %q has Settings.Gates without a flag; make them with NewGates", c.Name)
	default:
		gates.register(own)
	}
	return own, nil
}

// usage is the help of --cloud-provider.
func (c *choice) usage() string {
	if len(c.clouds) == 0 {
		return "where nodes come from"
	}
	text := "where nodes come from: " + strings.Join(c.names(), " or ") + "; empty for "
	for i := range c.clouds {
		if by := c.chooser(&c.clouds[i]); by != nil && i < len(c.clouds)-1 {
			text += fmt.Sprintf("%s if there is a --%s, else ", c.clouds[i].Name, by.Name)
		}
	}
	return text + c.clouds[len(c.clouds)-1].Name
}

func (c *choice) names() []string {
	var out []string
	for i := range c.clouds {
		out = append(out, c.clouds[i].Name)
	}
	return out
}

// chooser is the flag that chooses a cloud; nil if none does.
func (c *choice) chooser(of *Cloud) *pflag.Flag {
	if of.Settings.ChosenBy == "" {
		return nil
	}
	return c.own[of.Name].Lookup(of.Settings.ChosenBy)
}

// check says what is wrong with the clouds themselves.
func (c *choice) check() error {
	if len(c.clouds) == 0 {
		return errors.New("no cloud was given to run on; give operator.Main or operator.NewCommand at least one")
	}
	names := c.names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("there are two clouds %q; give each a name of its own", name)
		}
	}
	for i := range c.clouds {
		one := &c.clouds[i]
		if err := one.check(); err != nil {
			return err
		}
		if by := one.Settings.ChosenBy; by != "" && c.chooser(one) == nil {
			return fmt.Errorf("cloud %q is chosen by --%s, which it does not register; register it or "+
				"leave Settings.ChosenBy empty", one.Name, by)
		}
		if by := c.chooser(one); by != nil && (by.Value.Type() != "string" || by.DefValue != "") {
			return fmt.Errorf("cloud %q is chosen by --%s, which is not a text that is empty by default, so it "+
				"would always be chosen", one.Name, by.Name)
		}
	}
	return c.clash
}

// choose fills in the name where none was given.
func (c *choice) choose() error {
	c.byHand = c.name != ""
	if !c.byHand {
		c.name = c.clouds[len(c.clouds)-1].Name
		for i := range c.clouds {
			if by := c.chooser(&c.clouds[i]); by != nil && by.Value.String() != "" {
				c.name = c.clouds[i].Name
				break
			}
		}
	}
	if c.chosen() == nil {
		return fmt.Errorf("--cloud-provider: %q is not one of %s", c.name, strings.Join(c.names(), ", "))
	}
	return nil
}

// chosen is the cloud that runs; nil if there is none of that name.
func (c *choice) chosen() *Cloud {
	for i := range c.clouds {
		if c.clouds[i].Name == c.name {
			return &c.clouds[i]
		}
	}
	return nil
}

// others are the clouds that are not used.
func (c *choice) others() []*Cloud {
	var out []*Cloud
	for i := range c.clouds {
		if c.clouds[i].Name != c.name {
			out = append(out, &c.clouds[i])
		}
	}
	return out
}

// withoutEffect lists the settings of other clouds that were given.
func (c *choice) withoutEffect() []string {
	var out []string
	for _, other := range c.others() {
		c.own[other.Name].VisitAll(func(flag *pflag.Flag) { // in the order of their names
			if flag.Changed {
				out = append(out, fmt.Sprintf("--%s (it is for --cloud-provider=%s)", flag.Name, other.Name))
			}
		})
	}
	return out
}

// elsewhere says, by the kinds of the clouds that are not used, how they would be. A cluster at AWS whose controller
// was not told its name runs with simulated nodes, and the log has to say so of its pools.
func (c *choice) elsewhere() map[cluster.ClassRef]string {
	out := map[cluster.ClassRef]string{}
	for _, other := range c.others() {
		for _, gvk := range other.Kinds.NodeClasses {
			out[cluster.ClassRef{Group: gvk.Group, Kind: gvk.Kind}] =
				fmt.Sprintf("the controller runs with --cloud-provider=%s; give it %s", c.name, c.wayTo(other))
		}
	}
	return out
}

// wayTo says what the controller must be given to use a cloud. A cloud that was chosen by hand holds whatever other
// settings say.
func (c *choice) wayTo(to *Cloud) string {
	byHand := "--cloud-provider=" + to.Name
	by := c.chooser(to)
	if by == nil || by.Value.String() != "" {
		return byHand
	}
	flag := fmt.Sprintf("--%s (%s)", by.Name, variable(by.Name))
	if c.byHand {
		return flag + " and " + byHand
	}
	return flag + ", which selects " + to.Name
}

// asking bounds the question of tellOthers: the start does not wait for a warning.
const asking = 5 * time.Second

// tellOthers warns at the start that there are NodeClasses of a cloud that is not used, although a setting would have
// chosen it: that is easily forgotten. Whether there are is only asked for the warning: a cluster that does not know
// them, or does not tell, is fine.
func (c *choice) tellOthers(ctx context.Context, api client.Reader, log logr.Logger) {
	ctx, done := context.WithTimeout(ctx, asking)
	defer done()
	for _, other := range c.others() {
		if c.chooser(other) == nil {
			continue
		}
		for _, gvk := range other.Kinds.NodeClasses {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			if err := api.List(ctx, list, client.Limit(1)); err != nil || len(list.Items) == 0 {
				continue
			}
			log.Info(fmt.Sprintf("WARNING: the cluster has %ses, but nodes come from another cloud", gvk.Kind),
				"provider", c.name, "fix", "give the controller "+c.wayTo(other), gvk.Kind, list.Items[0].GetName())
		}
	}
}
