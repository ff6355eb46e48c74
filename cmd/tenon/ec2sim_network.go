//go:build !windows

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
)

func newSimSubnet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subnet",
		Short: "List subnets, say how many addresses are free, remove one or put it back",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List the subnets", Args: cobra.NoArgs,
		RunE: simCall(func(cmd *cobra.Command, c control.Client, _ []string) error {
			var all []struct {
				ID, Zone, CIDR string
				Free           int
			}
			if err := c.Do(cmd.Context(), http.MethodGet, "subnets", nil, &all); err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "SUBNET\tZONE\tRANGE\tFREE")
			for _, s := range all {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\n", s.ID, s.Zone, s.CIDR, s.Free)
			}
			return table.Flush()
		})}
	free := &cobra.Command{Use: "free SUBNET ADDRESSES", Short: "Say how many addresses are free",
		Args: cobra.ExactArgs(2), RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number of addresses", args[1])
			}
			return c.Do(cmd.Context(), http.MethodPost, "subnets/"+url.PathEscape(args[0]), map[string]int{"free": n},
				nil)
		})}
	remove := &cobra.Command{Use: "remove SUBNET", Short: "Remove a subnet", Args: cobra.ExactArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			return c.Do(cmd.Context(), http.MethodDelete, "subnets/"+url.PathEscape(args[0]), nil, nil)
		})}
	restore := &cobra.Command{Use: "restore SUBNET", Short: "Put a subnet back that was removed, as it was",
		Args: cobra.ExactArgs(1), RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			return c.Do(cmd.Context(), http.MethodPost, "subnets/"+url.PathEscape(args[0])+"/restore", nil, nil)
		})}
	cmd.AddCommand(list, free, remove, restore)
	return cmd
}

func newSimSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Make snapshots known that volumes start from",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:     "add SNAPSHOT GIB",
		Short:   "Make a snapshot of a size known: one that spec.blockDeviceMappings names",
		Example: "  tenon ec2sim snapshot add snap-0123456789abcdef0 50",
		Args:    cobra.ExactArgs(2),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			gib, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil {
				return fmt.Errorf("%q is not a size in GiB", args[1])
			}
			return c.Do(cmd.Context(), http.MethodPost, "snapshots", map[string]any{"id": args[0], "gib": gib}, nil)
		}),
	})
	return cmd
}

func newSimShift() *cobra.Command {
	var during time.Duration
	var auto, end bool
	cmd := &cobra.Command{
		Use:     "shift ZONE-ID",
		Short:   "Begin or end a zonal shift away from a zone",
		Example: "  tenon ec2sim shift usw2-az1 --for 10m\n  tenon ec2sim shift usw2-az1 --end",
		Args:    cobra.ExactArgs(1),
		RunE: simCall(func(cmd *cobra.Command, c control.Client, args []string) error {
			if end {
				if cmd.Flags().Changed("for") || auto {
					return fmt.Errorf("--end goes without --for and --auto")
				}
				return c.Do(cmd.Context(), http.MethodDelete, "zonal-shifts/"+url.PathEscape(args[0]), nil, nil)
			}
			if during <= 0 {
				return fmt.Errorf("--for: %s is no time for which a shift can last; use for instance 10m", during)
			}
			in := map[string]any{"zone": args[0], "seconds": during.Seconds(), "auto": auto}
			return c.Do(cmd.Context(), http.MethodPost, "zonal-shifts", in, nil)
		}),
	}
	cmd.Flags().DurationVar(&during, "for", time.Hour, "how long it lasts")
	cmd.Flags().BoolVar(&auto, "auto", false, "as one that AWS begins by itself")
	cmd.Flags().BoolVar(&end, "end", false, "end all shifts away from the zone")
	return cmd
}
