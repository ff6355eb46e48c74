//go:build !windows

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/control"
)

// newSimCredentials makes "tenon ec2sim credentials".
func newSimCredentials() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "credentials",
		Aliases: []string{"credential", "keys"},
		Short:   "End sessions, and take keys away and give them back",
		Long: `Rehearse wrong credentials and sessions that expire.

The key of DIR/aws.env is static: it has no session that could expire, but it can be removed and put back. A controller
that takes on a role (AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE) has a session; it asks STS for another one when its
own has expired. "tenon ec2sim deny sts:AssumeRoleWithWebIdentity" keeps it from getting one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List the keys and sessions", Args: cobra.NoArgs,
		RunE: simCall(listCredentials)}
	expire := &cobra.Command{Use: "expire", Short: "Let all sessions expire now", Args: cobra.NoArgs,
		RunE: simCall(expireSessions)}
	remove := &cobra.Command{
		Use: "remove [KEY...]",
		Short: "Take keys away, so that whoever signs with them is a stranger; without a name all static ones, such " +
			"as the lab's",
		RunE: simCall(removeKeys),
	}
	restore := &cobra.Command{Use: "restore", Short: "Put all keys back that were removed", Args: cobra.NoArgs,
		RunE: simCall(restoreKeys)}
	cmd.AddCommand(list, expire, remove, restore)
	return cmd
}

func listCredentials(cmd *cobra.Command, c control.Client, _ []string) error {
	all, err := c.Credentials(cmd.Context())
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tSTATE\tEXPIRES\tPRINCIPAL")
	for _, k := range all {
		expires := "never"
		if k.Expires != nil {
			expires = k.Expires.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", k.ID, k.State, expires, k.ARN)
	}
	return table.Flush()
}

func expireSessions(cmd *cobra.Command, c control.Client, _ []string) error {
	n, err := c.Expire(cmd.Context())
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("there is no session that could expire: the key of DIR/aws.env is static. " +
			"Take it away with: tenon ec2sim credentials remove. For a session, run the controller with AWS_ROLE_ARN " +
			"and AWS_WEB_IDENTITY_TOKEN_FILE (docs/tasks/lab.md)")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "expired: %d\n", n)
	return err
}

func removeKeys(cmd *cobra.Command, c control.Client, args []string) error {
	if len(args) == 0 {
		all, err := c.Credentials(cmd.Context())
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(k control.Credential) bool {
			return k.Session || k.State == control.KeyRemoved
		})
		for _, k := range all {
			args = append(args, k.ID)
		}
	}
	if len(args) == 0 {
		return errors.New("no static key is left; put them back with: tenon ec2sim credentials restore")
	}
	for _, id := range args {
		if err := c.Do(cmd.Context(), http.MethodDelete, "credentials/"+url.PathEscape(id), nil, nil); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "removed: %s\n", strings.Join(args, " "))
	return err
}

func restoreKeys(cmd *cobra.Command, c control.Client, _ []string) error {
	ids, err := c.RestoreKeys(cmd.Context())
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return errors.New("no key was removed")
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored: %s\n", strings.Join(ids, " "))
	return err
}
