//go:build !windows

package main

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
)

func newSimCapacity() *cobra.Command {
	var code string
	cmd := &cobra.Command{
		Use:   "capacity TYPE ZONE CAPACITY-TYPE MACHINES",
		Short: "Say how many machines of a type there are to buy",
		Long: `Say how many machines of a type there are to buy in a zone, spot or on-demand. Names may have
stars; the last rule that matches counts. "tenon ec2sim capacity reset" makes everything
available again.`,
		Example: `  tenon ec2sim capacity m5.large us-west-2a spot 0
  tenon ec2sim capacity 'c*' '*' '*' 3
  tenon ec2sim capacity reset`,
		Args: cobra.MatchAll(cobra.MinimumNArgs(1), cobra.MaximumNArgs(4)),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			if len(args) == 1 && args[0] == "reset" {
				return c.Do(cmd.Context(), http.MethodDelete, "capacity", nil, nil)
			}
			if len(args) != 4 {
				return fmt.Errorf("give TYPE ZONE CAPACITY-TYPE MACHINES, or reset")
			}
			n, err := strconv.Atoi(args[3])
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number of machines", args[3])
			}
			return c.SetCapacity(cmd.Context(), control.Capacity{Type: args[0], Zone: args[1], CapacityType: args[2],
				Total: n, Code: code})
		}),
	}
	cmd.Flags().StringVar(&code, "code", "", "error code that refused launches get; empty for "+
		"InsufficientInstanceCapacity")
	return cmd
}

func newSimPrice() *cobra.Command {
	return &cobra.Command{
		Use:     "price TYPE [ZONE] DOLLARS",
		Short:   "Change a price: of spot in a zone or, without a zone, on demand",
		Example: "  tenon ec2sim price m5.large us-west-2a 0.031",
		Args:    cobra.RangeArgs(2, 3),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			dollars, err := strconv.ParseFloat(args[len(args)-1], 64)
			if err != nil || math.IsNaN(dollars) || math.IsInf(dollars, 0) {
				return fmt.Errorf("%q is not a price in dollars per hour", args[len(args)-1])
			}
			in := control.Price{Type: args[0], Dollars: dollars}
			if len(args) == 3 {
				in.Zone = args[1]
			}
			return c.SetPrice(cmd.Context(), in)
		}),
	}
}

func newSimAMI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ami",
		Short: "Publish, list, deprecate and remove images",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	publish := &cobra.Command{
		Use: "publish FAMILY",
		Short: "Publish a new release of a family, which @latest then stands for: al2, al2023, bottlerocket, " +
			"windows2019, windows2022, windows2025",
		Example: "  tenon ec2sim ami publish al2023",
		Args:    cobra.ExactArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			release, err := c.Publish(cmd.Context(), strings.ToLower(args[0]))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "published %s %s: %s\n", release.Family, release.Version,
				strings.Join(release.Images, " "))
			return err
		}),
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the images",
		Args:  cobra.NoArgs,
		RunE: simCall(func(cmd *cobra.Command, c control.Client, _ []string) error {
			return printImages(cmd, c)
		}),
	}
	cmd.AddCommand(publish, list, simEach("deprecate AMI...", "Mark images as deprecated", http.MethodPost, "images",
		"/deprecate"),
		simEach("remove AMI...", "Remove images", http.MethodDelete, "images", ""))
	return cmd
}

// simEach is a command that does the same with each of the things that it is given: a call to PATH/THING and the tail.
func simEach(use, short, method, path, tail string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.MinimumNArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			for _, thing := range args {
				if err := c.Do(cmd.Context(), method, path+"/"+url.PathEscape(thing)+tail, nil, nil); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

func printImages(cmd *cobra.Command, c control.Client) error {
	var list []struct{ ID, Name, Owner, Created, Deprecated string }
	if err := c.Do(cmd.Context(), http.MethodGet, "images", nil, &list); err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tNAME\tOWNER\tCREATED\tDEPRECATED")
	for _, m := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", m.ID, m.Name, m.Owner, m.Created, m.Deprecated)
	}
	return table.Flush()
}
