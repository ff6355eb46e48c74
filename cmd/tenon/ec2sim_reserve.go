//go:build !windows

package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
)

// newSimReservation makes "tenon ec2sim reservation".
func newSimReservation() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "reservation",
		Aliases: []string{"reservations"},
		Short:   "Make, list, interrupt and remove capacity reservations",
		Long: `Make capacity reservations that spec.capacityReservationSelectorTerms of an EC2NodeClass
selects, by tags or by the id that "add" prints. One that was removed is listed as cancelled;
its instances go on, outside of it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List the capacity reservations", Args: cobra.NoArgs,
		RunE: simCall(listReservations)}
	cmd.AddCommand(newSimReserve(), list, simEach("interrupt RESERVATION...", "Warn the instances of reservations, "+
		"and end them when the warning is over", http.MethodPost, "reservations", "/interrupt"),
		simEach("remove RESERVATION...", "Cancel reservations", http.MethodDelete, "reservations", ""))
	return cmd
}

func newSimReserve() *cobra.Command {
	in := control.Reserve{}
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "add TYPE ZONE INSTANCES",
		Short: "Reserve capacity for so many instances and print the reservation's id",
		Example: `  tenon ec2sim reservation add m5.large us-west-2a 2 --tag team=blue
  tenon ec2sim reservation add p5.48xlarge us-west-2b 1 --capacity-block --for 24h`,
		Args: cobra.ExactArgs(3),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			n, err := strconv.ParseInt(args[2], 10, 32)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is not a number of instances; use 1 or more", args[2])
			}
			if cmd.Flags().Changed("for") && during <= 0 {
				return fmt.Errorf("--for: %s is no time for which a reservation can last; use for instance 24h", during)
			}
			in.Type, in.Zone, in.Count, in.Hours = args[0], args[1], int32(n), during.Hours()
			id, err := c.Reserve(cmd.Context(), in)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		}),
	}
	cmd.Flags().StringToStringVar(&in.Tags, "tag", nil, "a tag as KEY=VALUE; may be given more than once")
	cmd.Flags().StringVar(&in.Platform, "platform", "", "operating system, such as Windows; empty for Linux/UNIX")
	cmd.Flags().BoolVar(&in.Targeted, "targeted", false, "only for launches that name it")
	cmd.Flags().BoolVar(&in.CapacityBlock, "capacity-block", false, "as a capacity block")
	cmd.Flags().BoolVar(&in.Interruptible, "interruptible", false, "its owner may take it back")
	cmd.Flags().DurationVar(&during, "for", 0, "how long it lasts; without an end if it is not given")
	return cmd
}

func listReservations(cmd *cobra.Command, c control.Client, _ []string) error {
	all, err := c.Reservations(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESERVATION\tSTATE\tTYPE\tZONE\tCOUNT\tFREE\tPLATFORM\tKIND\tMATCH\tENDS\tTAGS")
	for _, r := range all {
		ends := "never"
		if r.Ends != nil {
			ends = r.Ends.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.State, r.Type, r.Zone, r.Count,
			r.Free, r.Platform, r.Kind, r.Match, ends, tagText(r.Tags))
	}
	return table.Flush()
}

// newSimPlacementGroup makes "tenon ec2sim placementgroup".
func newSimPlacementGroup() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "placementgroup",
		Aliases: []string{"placementgroups", "placement-group"},
		Short:   "Make, list and remove placement groups",
		Long:    `Make placement groups that spec.placementGroupSelector of an EC2NodeClass names.`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List the placement groups", Args: cobra.NoArgs,
		RunE: simCall(listGroups)}
	remove := simEach("remove GROUP...", "Remove placement groups without instances, by name or id", http.MethodDelete,
		"placement-groups", "")
	cmd.AddCommand(newSimGroup(), list, remove)
	return cmd
}

func newSimGroup() *cobra.Command {
	in := control.Group{}
	cmd := &cobra.Command{
		Use:   "add NAME STRATEGY",
		Short: "Make a placement group and print its id; the strategy is cluster, partition or spread",
		Example: `  tenon ec2sim placementgroup add near cluster
  tenon ec2sim placementgroup add apart partition --partitions 3`,
		Args: cobra.ExactArgs(2),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			if cmd.Flags().Changed("partitions") && in.Partitions < 1 {
				return fmt.Errorf("--partitions: a group can't have %d partitions; use 1 to 7", in.Partitions)
			}
			in.Name, in.Strategy = args[0], args[1]
			id, err := c.MakeGroup(cmd.Context(), in)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), id)
			return err
		}),
	}
	cmd.Flags().Int32Var(&in.Partitions, "partitions", 0, "partitions of a group of the strategy partition, 1 to 7; "+
		"7 if it is not given")
	cmd.Flags().StringToStringVar(&in.Tags, "tag", nil, "a tag as KEY=VALUE; may be given more than once")
	return cmd
}

func listGroups(cmd *cobra.Command, c control.Client, _ []string) error {
	all, err := c.PlacementGroups(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GROUP\tNAME\tSTRATEGY\tPARTITIONS\tMACHINES\tTAGS")
	for _, g := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", g.ID, g.Name, g.Strategy, g.Partitions, g.Machines,
			tagText(g.Tags))
	}
	return table.Flush()
}

// tagText writes tags in one word, by key.
func tagText(tags map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, key+"="+tags[key])
	}
	return strings.Join(out, ",")
}
