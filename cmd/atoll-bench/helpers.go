package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench"
	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
)

// helpers are the processes that benchmarks start, some of them in sandboxes.
func (p *program) helpers() []*cobra.Command {
	return []*cobra.Command{p.freshEnsure(), floor(), proxyChild(), proxyFloor(), proxyCaller(), egressCaller(), timedDocker()}
}

// freshEnsure measures one ensure in a process of its own.
func (p *program) freshEnsure() *cobra.Command {
	var callOnly bool
	cmd := &cobra.Command{
		Use: "fresh-ensure", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := p.options()
			if err != nil {
				return err
			}
			f, err := bench.MeasureFresh(cmd.Context(), o, callOnly)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), f)
		},
	}
	cmd.Flags().BoolVar(&callOnly, "call-only", false, "measure only the engine call")
	return cmd
}

// floor runs inside a sandbox: COUNT starts of a small program in each of
// PARALLEL tasks.
func floor() *cobra.Command {
	return &cobra.Command{
		Use: "floor COUNT PARALLEL", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			count, errCount := strconv.Atoi(args[0])
			parallel, errParallel := strconv.Atoi(args[1])
			if err := errors.Join(errCount, errParallel); err != nil {
				return err
			}
			f, err := bench.MeasureFloor(count, parallel)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), f)
		},
	}
}

// proxyChild is the proxy that is measured, in a process of its own.
func proxyChild() *cobra.Command {
	return &cobra.Command{
		Use: "proxy-child DIRECTORY UPSTREAM GUEST", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			child := &bench.ProxyChild{Dir: args[0], Upstream: args[1], Guest: args[2]}
			return child.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// proxyFloor passes bytes on: the least that the proxy is compared with.
func proxyFloor() *cobra.Command {
	return &cobra.Command{
		Use: "proxy-floor LISTEN TARGET", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			relay := &bench.ProxyFloor{Listen: args[0], Target: args[1]}
			return relay.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// proxyCaller runs inside a sandbox: CALLERS that call a model at ADDRESS.
func proxyCaller() *cobra.Command {
	return &cobra.Command{
		Use: "proxy-caller ADDRESS CALLERS HOW", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			count, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			callers := &bench.ProxyCallers{Address: args[0], Count: count, How: args[2]}
			return callers.Call(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// egressCaller runs inside a sandbox: requests one after the other.
func egressCaller() *cobra.Command {
	return &cobra.Command{
		Use: "egress-caller URL COUNT FRESH", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			count, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			took, err := (&egressstage.Caller{URL: args[0], Count: count, Fresh: args[2] == "true"}).Call(cmd.Context())
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), took)
		},
	}
}

// timedDocker stands in for docker: it runs a docker and notes how long that took.
func timedDocker() *cobra.Command {
	return &cobra.Command{
		Use: "timed-docker LOG PROGRAM ARGUMENT…", Hidden: true, Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := bench.TimeDocker(cmd.Context(), args[0], args[1:])
			if err == nil && code != 0 {
				return exitCode(code)
			}
			return err
		},
	}
}
